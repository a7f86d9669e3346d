"""Whether the files of deploy/ agree with the tree, with each other and with the pages. Prints what does not."""

import fnmatch
import pathlib
import re
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
findings = []


def expect(holds, finding):
    if not holds:
        findings.append(finding)


def in_build(path):
    """Whether `.dockerignore` lets a path through: the last line that fits decides."""
    sent = True
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        pattern = line.removeprefix("!")
        parents = [path, *(str(parent) for parent in pathlib.PurePath(path).parents)]
        fits = pattern.removeprefix("**/")
        if any(fnmatch.fnmatch(parent, fits) for parent in parents if parent != "."):
            sent = line.startswith("!")
    return sent


def grants(text):
    """The rights to tables, in order."""
    return re.findall(r"^\s*(GRANT .* ON foldback_.*;)$", text, re.MULTILINE)


# What the image copies is there, and reaches the builder.
for line in (DEPLOY / "Containerfile").read_text().splitlines():
    words = line.split()
    if not words or words[0] != "COPY" or any(word.startswith("--from") for word in words):
        continue
    for source in words[1:-1]:
        expect((ROOT / source).exists(), f"Containerfile: {source} is not there")
        expect(in_build(source), f".dockerignore: {source} does not reach the builder")
members = yaml.safe_load("[" + re.search(r"^members = \[(.*)\]$", (ROOT / "Cargo.toml").read_text(), re.M)[1] + "]")
copied = (DEPLOY / "Containerfile").read_text()
for member in members:
    folder = member.removesuffix("/*")
    expect(f"COPY {folder} " in copied, f"Containerfile: the workspace's member {folder} is not copied")

# What compose.yaml mounts and builds is there, and every variable of it is in the file that make_env writes.
text = (DEPLOY / "compose.yaml").read_text()
compose = yaml.safe_load(text)
written = set(re.findall(r"^([A-Z_]+)=", (DEPLOY / "make_env").read_text(), re.MULTILINE))
expect(set(re.findall(r"\$\{(\w+)", text)) == written, "compose.yaml: its variables are not those of make_env")
for name, service in compose["services"].items():
    for volume in service.get("volumes", []):
        source = volume.split(":")[0]
        if source.startswith("."):
            expect((DEPLOY / source).is_file(), f"compose.yaml: {name} mounts {source}, which is not there")
        else:
            expect(source in compose["volumes"], f"compose.yaml: {name} mounts {source}, which is no volume")
    build = service.get("build")
    if build:
        expect((DEPLOY / build["context"] / build["dockerfile"]).is_file(), f"compose.yaml: {name} has nothing to build")
nodes = {name for name in compose["services"] if name.startswith("gateway-")}
balanced = set(re.findall(r"server (\S+) \1:8377", (DEPLOY / "haproxy.cfg").read_text()))
expect(nodes == balanced, f"haproxy.cfg: it has {sorted(balanced)}, and compose.yaml {sorted(nodes)}")

# Every manifest is in the list, except the secret, and what they name is there.
listed = set(yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())["resources"])
files = {file.name for file in KUBERNETES.glob("*.yaml")} - {"kustomization.yaml", "secret.example.yaml", "secret.yaml"}
expect(listed == files, f"kustomization.yaml: it lists {sorted(listed)}, and there are {sorted(files)}")
documents = [
    document
    for file in sorted(files | {"secret.example.yaml"})
    for document in yaml.safe_load_all((KUBERNETES / file).read_text())
]
keys = {
    (kind, document["metadata"]["name"], key)
    for document in documents
    for kind in ("configMapKeyRef", "secretKeyRef")
    if document["kind"] == {"configMapKeyRef": "ConfigMap", "secretKeyRef": "Secret"}[kind]
    for key in {**document.get("data", {}), **document.get("stringData", {})}
}


def references(value):
    """Every reference to a key of a config map or a secret."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in ("configMapKeyRef", "secretKeyRef"):
                yield name, inner["name"], inner["key"]
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


for document in documents:
    for reference in references(document):
        expect(reference in keys, f"manifests: {document['metadata']['name']} needs {reference}, which nothing sets")

# The rights are the same in all three places.
rights = grants((DEPLOY / "database/rights.sql").read_text())
expect(len(rights) == 5, f"rights.sql: {len(rights)} lines give rights to tables")
for other in ("docs/scaling.md", "deploy/kubernetes/config.yaml"):
    expect(grants((ROOT / other).read_text()) == rights, f"{other}: its rights are not those of rights.sql")

print("\n".join(findings))
sys.exit(bool(findings))
