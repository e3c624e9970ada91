# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""May this write happen, and what does it become? Functions from a request to a verdict; HTTP is elsewhere.

review: AdmissionReview in and out. verdict: the decision. fields, known_fields: unknown and unbuilt fields, by name.
kinds/: the rules of each kind, of which `rules` says what they consist. validate/: rules over several fields that kinds
share. defaults: what a machine says when its author did not. problem: what is wrong.
"""
