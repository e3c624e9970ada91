# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containerfiles and recipes describe the same images, and the lists that both read are whole."""

from __future__ import annotations

import json
import re

import pytest

from images.build import COLLECTION
from images.recipes import NAMES, Recipe, packages_file, recipe
from images.rootfs import parse_packages


@pytest.fixture(params=NAMES)
def making(request: pytest.FixtureRequest) -> Recipe:
    return recipe(request.param)


def instructions(name: str) -> list[tuple[str, str]]:
    """Return the instructions of a Containerfile with their arguments, continued lines joined."""
    text = (COLLECTION / "images" / name / "Containerfile").read_text().replace("\\\n", "")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.partition(" ")[0], line.partition(" ")[2].strip()) for line in lines]


def test_a_containerfile_ends_in_the_layers_and_the_configuration_of_its_recipe(making: Recipe) -> None:
    stage = instructions(making.name)
    final = stage[stage.index(("FROM", "scratch")) + 1 :]
    wanted = [("COPY", f"--from=build /out/{layer.name} /") for layer in making.layers]
    wanted += [("ENV", f"{name}={value}") for name, value in making.config.environment.items()]
    wanted += [("USER", making.config.user)] if making.config.user else []
    wanted += [("ENTRYPOINT", json.dumps(making.config.entrypoint))] if making.config.entrypoint else []
    assert final == wanted


def test_a_containerfile_installs_the_listed_packages_and_runs_the_same_program(making: Recipe) -> None:
    build = instructions(making.name)
    assert build[0] == ("FROM", f"docker.io/library/debian:{making.debian.suite}-slim AS build")
    assert ("COPY", f"images/{making.name}/packages /tmp/packages") in build
    install = next(argument for name, argument in build if name == "RUN")
    assert re.search(r"sed 's/#\.\*//' /tmp/packages \| xargs apt-get install --yes --no-install-recommends", install)
    assert ("RUN", f"python3 -B -m images assemble {making.name} --root / --output /out") in build
    if making.debian.older:
        name, architecture = making.debian.older
        assert f"deb [arch={architecture}] http://deb.debian.org/debian {name} main" in install


def test_a_containerfile_copies_only_what_the_collection_has(making: Recipe) -> None:
    sources = [argument.split()[0] for name, argument in instructions(making.name) if name == "COPY"]
    assert [source for source in sources if not source.startswith("--") and not (COLLECTION / source).exists()] == []


def test_package_lists_are_sorted_and_name_a_python(making: Recipe) -> None:
    text = packages_file(COLLECTION, making.name).read_text()
    named = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert tuple(named) == parse_packages(text)
    assert any(name.startswith("python3") for name in named), "the Containerfile's build stage runs one"


def test_a_layers_key_is_the_same_twice_and_each_has_its_own(making: Recipe) -> None:
    keys = [layer.key(COLLECTION) for layer in making.layers]
    assert keys == [layer.key(COLLECTION) for layer in making.layers]
    assert len(set(keys)) == len(keys)
