# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What values a field may have, and the CRDs that enforce it: generated from the types, never written by hand.

bounds, patterns: what types say about their fields. shape: types as data. openapi: the schema of a type. cel: rules
for the API server. crds: the CustomResourceDefinition of a kind. generate_crds: the tool that writes what
the role needs.
"""
