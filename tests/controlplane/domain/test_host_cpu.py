# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node's CPU as libvirt describes it. The texts are excerpts of libvirt 11's output."""

from __future__ import annotations

from controlplane.domain.host_cpu import host_model, read_emulated_cpu, read_host_cpu, read_machines

MODE = """<mode name='host-model' supported='yes'>
      <model fallback='forbid'>EPYC</model>
      <vendor>AMD</vendor>
      <feature policy='require' name='x2apic'/>
      <feature policy='require' name='ss'/>
      <feature policy='disable' name='svm'/>
    </mode>"""
CAPABILITIES = f"""<domainCapabilities><arch>x86_64</arch><cpu>
    <mode name='host-passthrough' supported='yes'/>
    {MODE}
    <mode name='custom' supported='yes'>
      <model usable='yes' vendor='unknown' canonical='486-v1'>486</model>
      <model usable='no' vendor='Intel' canonical='Broadwell-v1'>Broadwell</model>
      <blockers model='Broadwell'><feature name='hle'/></blockers>
      <model usable='yes' vendor='AMD'>EPYC</model>
    </mode></cpu></domainCapabilities>"""
EXPANDED = """<cpu mode='custom' match='exact'><model fallback='forbid'>EPYC</model><vendor>AMD</vendor>
  <feature policy='require' name='avx2'/><feature policy='require' name='x2apic'/>
  <feature policy='disable' name='svm'/></cpu>"""


def test_a_cpu_is_a_model_with_additional_features() -> None:
    assert read_host_cpu(CAPABILITIES, EXPANDED) == {
        "model": "EPYC",
        "vendor": "AMD",
        "models": ["486", "EPYC"],
        "required": ["ss", "x2apic"],
        "features": ["avx2", "x2apic"],
    }


def test_the_host_model_is_passed_back_to_libvirt_to_expand_its_features() -> None:
    cpu = host_model(CAPABILITIES)
    assert cpu is not None
    assert cpu.startswith('<cpu mode="custom" match="exact"><model fallback="forbid">EPYC</model>')
    assert '<feature policy="disable" name="svm" />' in cpu


def test_an_unsupported_host_model_is_not_reported() -> None:
    without = CAPABILITIES.replace(MODE, "<mode name='host-model' supported='no'/>")
    assert host_model(without) is None
    assert read_host_cpu(without, EXPANDED) is None


def test_a_feature_too_long_for_a_label_is_left_out() -> None:
    cpu = read_host_cpu(CAPABILITIES.replace("name='ss'", f"name='{'s' * 61}'"), EXPANDED)
    assert cpu is not None
    assert cpu["required"] == ["x2apic"]


def test_boards_are_those_of_one_architecture() -> None:
    capabilities = """<capabilities><guest><os_type>hvm</os_type><arch name='i686'><wordsize>32</wordsize>
      <machine maxCpus='255'>pc-i440fx-old</machine></arch></guest>
    <guest><os_type>hvm</os_type><arch name='x86_64'><wordsize>64</wordsize>
      <machine maxCpus='1'>none</machine>
      <machine canonical='pc-q35-10.0' maxCpus='4096'>q35</machine>
      <machine maxCpus='4096' deprecated='yes'>pc-q35-4.2</machine>
      <domain type='qemu'/><domain type='kvm'><machine maxCpus='64'>microvm</machine></domain></arch></guest>
    </capabilities>"""
    assert read_machines(capabilities, "x86_64") == {
        "machines": ["microvm", "none", "pc-q35-10.0", "pc-q35-4.2", "q35"],
        "deprecated_machines": ["pc-q35-4.2"],
    }


def test_under_emulation_only_models_are_described() -> None:
    assert read_emulated_cpu(CAPABILITIES) == {"model": "", "models": ["486", "EPYC"]}
    assert read_emulated_cpu("<domainCapabilities/>") == {"model": "", "models": []}
