# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The limits of each field, and the CRDs that enforce them. CRDs are generated from the types.

bounds, patterns: limits in the types' annotations. shape: types as data. openapi: the schema of a type. cel: rules for
the API server. crds: the CustomResourceDefinition of a kind. generate_crds: the tool that writes the role's files.
"""
