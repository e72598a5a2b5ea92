# NetBSD's stf between two interfaces: the 6to4 relay of the paper of 2013 (there NetBSD 6.0.1). Root's shell is there.

settings="net.inet.ip.forwarding net.inet6.ip6.forwarding"
state="${SIXWAY_RECIPE_STATE:-/var/run}/sixway-recipe.$INSIDE"

about() {
    echo "what=NetBSD stf"
    echo "tasks=forwarder,6to4-relay,6to4-router"
}

why_not() {
    [ "$(uname -s)" = NetBSD ] || { echo "why=it is $(uname -s) there, not NetBSD"; return; }
    [ "$(id -u)" = 0 ] || echo "why=the recipe does not run as root there"
}

version() {
    echo "version=NetBSD $(uname -r)"
}

six_to_four() {
    # shellcheck disable=SC2046
    printf '2002:%02x%02x:%02x%02x' $(echo "$1" | tr . ' ')
}

family() {
    case $1 in *:*) echo inet6 ;; *) echo inet ;; esac
}

start() {
    set -e
    # What a start that was killed has noted is how it was before the lab changed it.
    if [ ! -e "$state" ]; then
        for key in $settings; do echo "$key=$(sysctl -n "$key")"; done >"$state.new"
        mv "$state.new" "$state"
    fi
    sysctl -q -w net.inet.ip.forwarding=1 net.inet6.ip6.forwarding=1
    for address in $INSIDE_ADDRESSES; do ifconfig "$INSIDE" "$(family "$address")" "$address" alias; done
    for address in $OUTSIDE_ADDRESSES; do ifconfig "$OUTSIDE" "$(family "$address")" "$address" alias; done
    ifconfig "$INSIDE" up
    ifconfig "$OUTSIDE" up
    for route in $ROUTES; do
        route -q add "-$(family "${route%,*}")" "${route%,*}" "${route#*,}"
    done
    case $TASK in
    6to4-relay | 6to4-router)
        ifconfig stf0 create
        ifconfig stf0 inet6 "$(six_to_four "${NAT:-$ADDRESS}")::1" prefixlen 16 alias
        [ -z "$RELAY" ] || route -q add -inet6 default "$(six_to_four "$RELAY")::1"
        ;;
    forwarder) ;;
    *)
        echo "no such task: $TASK" >&2
        exit 1
        ;;
    esac
}

stop() {
    [ -z "$RELAY" ] || route -q delete -inet6 default
    ifconfig stf0 destroy 2>/dev/null
    for route in $ROUTES; do
        route -q delete "-$(family "${route%,*}")" "${route%,*}" "${route#*,}"
    done
    for address in $INSIDE_ADDRESSES; do ifconfig "$INSIDE" "$(family "$address")" "${address%/*}" -alias; done
    for address in $OUTSIDE_ADDRESSES; do ifconfig "$OUTSIDE" "$(family "$address")" "${address%/*}" -alias; done
    [ ! -e "$state" ] || while read -r setting; do sysctl -q -w "$setting"; done <"$state"
    rm -f "$state" "$state.new"
}

restart() {
    arp -d -a >/dev/null 2>&1
    ndp -c >/dev/null 2>&1
    :
}

# "user = 1, nice = 2, sys = 3, intr = 4, idle = 5", in ticks of the statistics clock.
cpu() {
    rate=$(sysctl -n kern.clockrate | sed -n 's/.*stathz = \([0-9]*\).*/\1/p')
    [ "${rate:-0}" -gt 0 ] || rate=100
    sysctl -n kern.cp_time | tr -dc '0-9,' | awk -F, -v rate="$rate" '{ printf "busy_ns=%.0f\n", ($1 + $2 + $3 + $4) * 1e9 / rate }'
}

memory() {
    vmstat -s | awk '/bytes per page/ { page = $1 } /pages wired/ { wired = $1 } END { printf "octets=%.0f\n", page * wired }'
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
    netstat -s -p ip6 | awk '/packets? not forwardable/ { print "not-forwarded=" $1; exit }'
}

"$1"
