"""The wheel, installed by pip outside of the checkout: it has all that the command needs."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import onnx
import pytest

from superopt.rules.format import load_rules
from superopt.shipped import shipped_rules
from tests.models import assert_same, normalized

CHECKOUT = Path(__file__).parents[1]


def run(*command: object, cwd: Path) -> str:
    """What a command prints, run apart from this checkout and this environment's settings."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "HOME": str(cwd), "XDG_CACHE_HOME": str(cwd / ".cache")},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built by the build backend itself, so that nothing is fetched."""
    folder = tmp_path_factory.mktemp("wheel")
    run(
        sys.executable,
        *("-m", "pip", "wheel", CHECKOUT, "--no-deps", "--no-build-isolation", "--quiet", "--wheel-dir", folder),
        cwd=folder,
    )
    (built,) = folder.glob("superopt-*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel in it; what it depends on is lent from the one that runs the tests."""
    folder = tmp_path_factory.mktemp("elsewhere")
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv", cwd=folder)
    python = folder / "venv" / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--quiet", wheel, cwd=folder)
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip())
    # A line of a path file does not read path files there: an editable superopt is not lent.
    (site / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def test_the_wheel_holds_the_packages_the_rules_and_the_licence_alone(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {f"superopt/data/rules/{p.name}" for p in shipped_rules()} <= set(names)
    assert {"superopt/py.typed", "superopt/rules/exchange/rules.schema.json"} <= set(names)
    assert "superopt/rules/exchange/onnxscript_preamble.txt" in names
    assert any(n.endswith("licenses/LICENSE") for n in names)
    assert {n.split("/")[0] for n in names if ".dist-info" not in n} == {"superopt", "service"}


def test_the_installed_command_finds_the_shipped_rules(python: Path, tmp_path: Path) -> None:
    where = run(python, "-c", "import superopt; print(superopt.__file__)", cwd=tmp_path)
    assert not Path(where.strip()).is_relative_to(CHECKOUT)
    listed = run(python.with_name("superopt"), "rules", "list", cwd=tmp_path).splitlines()
    assert len(listed) == sum(len(load_rules(p).rules) for p in shipped_rules()) > 0


def test_the_installed_command_optimizes_a_model(python: Path, tmp_path: Path) -> None:
    onnx.save(normalized(), tmp_path / "m.onnx")
    said = run(python.with_name("superopt"), "optimize", "m.onnx", "o.onnx", "--time", 20, cwd=tmp_path)
    assert "faster (95 % interval" in said
    assert_same(tmp_path / "o.onnx", tmp_path / "m.onnx")


def test_the_installed_library_is_typed_and_imports_alone(python: Path, tmp_path: Path) -> None:
    text = "import superopt; print(superopt.optimize.__annotations__['return'], 'service' in __import__('sys').modules)"
    assert run(python, "-c", text, cwd=tmp_path).split() == ["Result", "False"]
