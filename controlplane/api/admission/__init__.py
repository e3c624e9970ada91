# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Admission of users' writes: functions from a request to a verdict. virt_api serves them over HTTP.

review: decode and encode AdmissionReviews. verdict: the decision. fields, known_fields: unknown and unbuilt fields.
rules, kinds/: the interface of a kind's rules, and the rules. validate/: rules over several fields that kinds share.
defaults, identity, spelling: changes to an object. problem: what is wrong with an object.
"""
