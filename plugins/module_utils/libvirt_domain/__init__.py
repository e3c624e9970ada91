# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""libvirt's domain XML as Python classes. Standard library only; Python 3.10 or later; this file imports nothing.

model: one class per XML element, without defaults or policy. codec: from these classes to XML. namespace: the XML
namespace of our own element in a domain's metadata.

The control plane imports this package under the name `libvirt_domain` (docs/adr/0019-what-modules-can-import.md).
"""
