"""Java libraries by their Maven coordinates, fetched by the Ivy that PySpark brings: no Maven needed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, tostring

import pyspark

from dovetail.core.errors import DovetailError
from dovetail.runtime.spark.java import ensure_java

RESOLVE_TIMEOUT_S = 600.0


class JarsMissing(DovetailError):
    """Artifacts that the repository does not have, or no repository within reach."""


@dataclass(frozen=True)
class Artifact:
    """`without` names modules that it depends on and that must not come along."""

    group: str
    name: str
    version: str
    without: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.group}:{self.name}:{self.version}"


def java_program() -> str:
    """The Java that Spark would start."""
    ensure_java()
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    assert found is not None
    return found


def resolve_jars(artifacts: Iterable[Artifact]) -> list[Path]:
    """The artifacts and all that they depend on, from Ivy's cache of this user or from Maven Central."""
    wanted = tuple(artifacts)
    with tempfile.TemporaryDirectory() as folder:
        module, class_path = Path(folder) / "ivy.xml", Path(folder) / "class_path"
        module.write_bytes(tostring(_ivy_module(wanted)))
        command = [java_program(), "-jar", str(_ivy_jar()), "-ivy", str(module), "-cachepath", str(class_path)]
        run = subprocess.run(command, capture_output=True, text=True, timeout=RESOLVE_TIMEOUT_S, check=False)
        if run.returncode != 0 or not class_path.exists():
            said = [line.strip() for line in run.stdout.splitlines() if "not found" in line]
            raise JarsMissing(
                f"cannot get {', '.join(map(str, wanted))}",
                where="; ".join(said) or (run.stdout + run.stderr)[-500:].strip(),
                hint="check that this machine reaches Maven Central; what was fetched once stays in Ivy's cache",
            )
        return [Path(jar) for jar in class_path.read_text().strip().split(os.pathsep)]


def _ivy_jar() -> Path:
    jars = sorted((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    if not jars:
        raise JarsMissing("this PySpark brings no Ivy", hint="install pyspark from PyPI, whole")
    return jars[-1]


def _ivy_module(artifacts: tuple[Artifact, ...]) -> Element:
    module = Element("ivy-module", version="2.0")
    SubElement(module, "info", organisation="dovetail", module="testing")
    dependencies = SubElement(module, "dependencies")
    for artifact in artifacts:
        entry = SubElement(
            dependencies,
            "dependency",
            org=artifact.group,
            name=artifact.name,
            rev=artifact.version,
            conf="default->default",
        )
        for name in artifact.without:
            SubElement(entry, "exclude", module=name)
    return module
