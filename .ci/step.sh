#!/usr/bin/env bash
# step WORDS COMMAND...: runs a command, says how long it took, and returns what it returned. Sourced by both lanes.
step() {
    local words=$1 begin=$SECONDS status=0
    shift
    "$@" || status=$?
    echo "$words: $((SECONDS - begin)) s"
    return "$status"
}
