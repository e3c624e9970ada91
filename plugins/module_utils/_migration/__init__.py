# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What kubevirt_migration and kubevirt_migration_info do, private to them.

batch             all machines of a task
request           options to one request per machine
decide            what to do about one machine; pure
move              do it
nodes             whether a node takes a machine
migration_status  phases, target and troubles of a migration
info              read migrations
argspec           the options
"""
