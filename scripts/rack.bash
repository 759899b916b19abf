# What scripts/demo and the QEMU tests share: a fabric manager and a rack of two QEMU hosts in a folder of their
# own, claims that are checked, and an end that leaves nothing behind. Sourced, with $root and $name set.
#
# After start_manager and start_rack: $bin, $run (logs), $media, $topology, $port, and MEMTIDE_URL is exported.

bin=${MEMTIDE_BIN:-$root/build/bin}
run=$(mktemp -d "/tmp/memtide-$name.XXXXXX")
media=$(mktemp -d "/dev/shm/memtide-$name.XXXXXX")
topology=$run/topology.yaml
manager_pid=
rack_is_up=
job=
started=$(date +%s.%N)

elapsed() { awk -v a="$started" -v b="$(date +%s.%N)" 'BEGIN {printf "%6.1fs", b - a}'; }
say() { printf '\n[%s] %s\n' "$(elapsed)" "$*"; }
checks=0
claim() {  # claim TEXT COMMAND...: runs the command, and ends everything when it fails
    local text=$1
    shift
    if "$@"; then
        checks=$((checks + 1))
        printf '[%s]   ok: %s\n' "$(elapsed)" "$text"
    else
        printf '[%s]   FAILED: %s\n' "$(elapsed)" "$text" >&2
        exit 1
    fi
}
eventually() {  # eventually SECONDS COMMAND...: repeats the command until it succeeds
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        [[ $SECONDS -lt $deadline ]] || return 1
        sleep 0.1
    done
}

# promptly COMMAND...: a signal ends this script at once, and not when the command has ended: the command gets a
# process group of its own, which the script takes with it.
promptly() {
    local code=0
    set -m
    "$@" </dev/null &
    job=$!
    set +m
    wait "$job" || code=$?
    job=
    return "$code"
}
end_job() {
    [[ -n $job ]] || return 0
    kill -TERM -- "-$job" 2>/dev/null || true
    wait "$job" 2>/dev/null || true
}

cleanup() {
    local code=$?
    trap '' INT TERM
    trap - EXIT
    [[ $code != 130 && $code != 143 ]] || echo "$name: interrupted" >&2
    end_job
    [[ -z $rack_is_up ]] || memtide rack down "$topology" --run-dir "$run/rack" >/dev/null 2>&1 || true
    stop_manager
    rm -rf "$media"
    case $code in
        0 | 130 | 143) rm -rf "$run" ;;
        *) rmdir "$run" 2>/dev/null || echo "$name: failed; logs are in $run" >&2 ;;
    esac
    exit "$code"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

memtide() { "$bin/memtide" "$@"; }
on() {  # on HOST COMMAND...: runs a command inside a QEMU host
    local host=$1
    shift
    memtide rack exec "$topology" --run-dir "$run/rack" "$host" -- "$@"
}
field() { jq -r "$2" <<<"$1"; }

# The manager speaks TLS and wants to know who asks, agents have certificates of a CA of this run, and the CLI has a
# token; `secure=` before sourcing this (MEMTIDE_INSECURE=1 for scripts/demo) leaves all of that out.
secure=${secure-yes}
[[ -z ${MEMTIDE_INSECURE:-} ]] || secure=
certs=$run/certs
issue_credentials() {
    [[ -n $secure && ! -e $run/operator.token ]] || return 0
    # Guests reach the manager at 10.0.2.101, through a relay.
    "$bin/memtide-fabric-manager" certs init "$certs" --server 127.0.0.1 --server 10.0.2.101 \
        --agent host0 --agent host1 >/dev/null
    "$bin/memtide-fabric-manager" token create --config "$run/manager.yaml" --role operator \
        --out "$run/operator.token" 2>/dev/null
    export MEMTIDE_CA=$certs/ca.pem MEMTIDE_TOKEN_FILE=$run/operator.token
}

# Fewer samples than by default: an emulated device answers 0.2 MB a second.
configure() {  # the example configs, moved into the folder of this run
    sed -e "s#listen: .*#listen: [\"unix://$run/switch0.sock\"]#" -e "s#media: .*#media: $media#" \
        "${base_topology:-$root/config/topologies/one-switch-one-mld.yaml}" >"$topology"
    sed -e "s#^listen: .*#listen: 127.0.0.1:${port:-0}#" -e "s#^state: .*#state: $run/state.db#" \
        -e "s#address: [^,}]*#address: unix://$run/switch0.sock#" \
        -e "s#^  samples: [0-9]*#  samples: 32#" \
        "$root/config/fabric-manager.yaml" >"$run/manager.yaml"
    [[ -z $secure ]] || cat >>"$run/manager.yaml" <<END
tls:
  certificate: $certs/server.pem
  key: $certs/server.key
  client_ca: $certs/ca.pem
authentication:
  requests_per_second: 500
END
    issue_credentials
}
manager_port() { sed -nE 's/.*listening on 127\.0\.0\.1:([0-9]+).*/\1/p' "$run/manager.out"; }
manager_is_up_or_dead() { [[ -n $(manager_port) ]] || ! kill -0 "$manager_pid" 2>/dev/null; }
start_manager() {  # again after a stop: on the same port, so that the guests' relays find it
    configure
    : >"$run/manager.out"  # here, and not only by the job below: it is read at once
    "$bin/memtide-fabric-manager" --config "$run/manager.yaml" >"$run/manager.out" 2>>"$run/manager.log" &
    manager_pid=$!
    eventually 30 manager_is_up_or_dead || true
    port=$(manager_port)
    [[ -n $port ]] || { echo "$name: the fabric manager did not start" >&2; cat "$run/manager.log" >&2; exit 1; }
    export MEMTIDE_URL=http${secure:+s}://127.0.0.1:$port
}
stop_manager() {  # stop_manager [SIGNAL]
    [[ -n $manager_pid ]] || return 0
    kill "${1:--TERM}" "$manager_pid" 2>/dev/null || true
    wait "$manager_pid" 2>/dev/null || true
    manager_pid=
}
agent_is_connected() {
    [[ $(memtide --json hosts | jq -r ".items[] | select(.name == \"$1\") | .agent.connected") == true ]]
}
start_rack() {
    rack_is_up=yes
    promptly "$bin/memtide" rack up "$topology" --run-dir "$run/rack" --while $$ --manager "127.0.0.1:$port" --agent \
        ${secure:+--agent-certs "$certs"}
    local host
    for host in host0 host1; do eventually 60 agent_is_connected "$host"; done
}

# hold NODE: a program in host0 fills 64 KiB of the node and keeps them, until let_go; its words are in hold.out.
hold() {
    local node=$1
    shift
    [[ -p $run/hold ]] || mkfifo "$run/hold"
    : >"$run/hold.out"
    on host0 "$bin/memtide-memory-probe" hold --node "$node" --bytes 64KiB "$@" <"$run/hold" >"$run/hold.out" &
    hold_pid=$!
    exec 9>"$run/hold"
    eventually 60 grep -q holding "$run/hold.out"
}
let_go() {
    exec 9>&-
    wait "$hold_pid"
}
