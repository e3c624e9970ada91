# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What kubevirt_service does, private to it.

exposure       options to a Service; pure
ports          its ports; pure
service_owner  whether a live Service is for the target; pure
ensure         one Service: read, compare, write
"""
