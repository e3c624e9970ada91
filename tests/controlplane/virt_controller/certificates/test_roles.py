# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The key pairs and their subjects. That a usage or name of another role is refused: tls/test_certificates."""

from __future__ import annotations

from controlplane.tls.certificates import Subject
from controlplane.virt_controller.certificates.roles import ROLES, subject


def test_a_server_has_the_names_of_its_service_and_a_client_has_none() -> None:
    assert [(role.secret, role.trusts, subject(role, "virt")) for role in ROLES] == [
        (
            "kubevirt-virt-api-certs",
            False,
            Subject(
                common_name="virt-api.virt.svc",
                usage="server",
                dns_names=("virt-api.virt.svc", "virt-api.virt.svc.cluster.local"),
                uri="spiffe://kubevirt.virt/virt-api/server",
            ),
        ),
        (
            "kubevirt-virt-api-client-certs",
            True,
            Subject(common_name="virt-api/client", usage="client", uri="spiffe://kubevirt.virt/virt-api/client"),
        ),
    ]


def test_another_control_plane_has_other_subjects() -> None:
    assert all(subject(role, "virt") != subject(role, "other") for role in ROLES)
