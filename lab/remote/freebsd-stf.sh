# FreeBSD's stf between two interfaces: the 6to4 relay of the paper of 2013 (there FreeBSD 9.0). Root's shell is there.

settings="net.inet.ip.forwarding net.inet6.ip6.forwarding"
state="${SIXWAY_RECIPE_STATE:-/var/run}/sixway-recipe.$INSIDE"

about() {
    echo "what=FreeBSD stf"
    echo "tasks=forwarder,6to4-relay,6to4-router"
}

why_not() {
    [ "$(uname -s)" = FreeBSD ] || { echo "why=it is $(uname -s) there, not FreeBSD"; return; }
    [ "$(id -u)" = 0 ] || echo "why=the recipe does not run as root there"
}

version() {
    echo "version=FreeBSD $(uname -r)"
}

six_to_four() {
    # shellcheck disable=SC2046
    printf '2002:%02x%02x:%02x%02x' $(echo "$1" | tr . ' ')
}

# FAMILY ADDRESS: inet or inet6.
family() {
    case $1 in *:*) echo inet6 ;; *) echo inet ;; esac
}

start() {
    set -e
    # What a start that was killed has noted is how it was before the lab changed it.
    if [ ! -e "$state" ]; then
        # shellcheck disable=SC2086
        sysctl -e $settings >"$state.new"
        mv "$state.new" "$state"
    fi
    sysctl net.inet.ip.forwarding=1 net.inet6.ip6.forwarding=1 >/dev/null
    for address in $INSIDE_ADDRESSES; do ifconfig "$INSIDE" "$(family "$address")" "$address" alias; done
    for address in $OUTSIDE_ADDRESSES; do ifconfig "$OUTSIDE" "$(family "$address")" "$address" alias; done
    ifconfig "$INSIDE" up
    ifconfig "$OUTSIDE" up
    for route in $ROUTES; do
        route add "-$(family "${route%,*}")" "${route%,*}" "${route#*,}" >/dev/null
    done
    case $TASK in
    6to4-relay | 6to4-router)
        ifconfig stf0 create
        ifconfig stf0 inet6 "$(six_to_four "${NAT:-$ADDRESS}")::1" prefixlen 16 alias
        ifconfig stf0 up
        [ -z "$RELAY" ] || route add -inet6 default "$(six_to_four "$RELAY")::1" >/dev/null
        ;;
    forwarder) ;;
    *)
        echo "no such task: $TASK" >&2
        exit 1
        ;;
    esac
}

stop() {
    [ -z "$RELAY" ] || route delete -inet6 default >/dev/null 2>&1
    ifconfig stf0 destroy 2>/dev/null
    for route in $ROUTES; do
        route delete "-$(family "${route%,*}")" "${route%,*}" "${route#*,}" >/dev/null 2>&1
    done
    for address in $INSIDE_ADDRESSES; do ifconfig "$INSIDE" "$(family "$address")" "$address" -alias; done
    for address in $OUTSIDE_ADDRESSES; do ifconfig "$OUTSIDE" "$(family "$address")" "$address" -alias; done
    [ ! -e "$state" ] || while read -r setting; do sysctl "$setting" >/dev/null; done <"$state"
    rm -f "$state" "$state.new"
}

restart() {
    arp -d -a >/dev/null 2>&1
    ndp -c >/dev/null 2>&1
    :
}

# Ticks of the statistics clock: user, nice, system, interrupts, idle.
cpu() {
    rate=$(sysctl -n kern.clockrate | sed -n 's/.*stathz = \([0-9]*\).*/\1/p')
    sysctl -n kern.cp_time | awk -v rate="$rate" '{ printf "busy_ns=%.0f\n", ($1 + $2 + $3 + $4) * 1e9 / rate }'
}

# In use by the kernel and wired down.
memory() {
    echo "octets=$(($(sysctl -n vm.stats.vm.v_wire_count) * $(sysctl -n hw.pagesize)))"
}

clock() {
    now=$(date +%s%N)
    case $now in
    # A date without nanoseconds.
    *[!0-9]*) printf 'ns=%s000000000\nwithin_ns=1000000000\n' "$(date +%s)" ;;
    *) echo "ns=$now" ;;
    esac
}

counters() {
    netstat -s -p ip6 | awk '/packets? that cannot be forwarded|packets? not forwardable/ { print "not-forwarded=" $1; exit }'
}

"$1"
