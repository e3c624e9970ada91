# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The launchers of this node: one session for each launcher Pod. Decisions are in vmi/.

registry            adds and removes sessions as Pods come and go
session             the parts below, and one operation at a time
connection          socket, libvirt connection, looks at the domain
operations          executes the reconcilers' actions, one method each (domain_start: the longest)
user_requests       pause, reset, freeze and so on, and queries to the agent
migration_transfer  sends the guest to a migration's target
file_reader         reads report_file and console_backlog, which a launcher may replace
record              the launcher's status; ports: the interfaces to libvirt and virt-node
"""
