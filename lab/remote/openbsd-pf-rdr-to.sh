# OpenBSD's PF as a NAT44 that passes protocol 41 to the end of a tunnel inside, as the paper of 2012 needs. Root's shell is there.

settings="net.inet.ip.forwarding net.inet6.ip6.forwarding"
state="${SIXWAY_RECIPE_STATE:-/var/run}/sixway-recipe.$INSIDE"

about() {
    echo "what=OpenBSD PF, nat-to and rdr-to"
    echo "tasks=forwarder,nat44"
}

why_not() {
    [ "$(uname -s)" = OpenBSD ] || { echo "why=it is $(uname -s) there, not OpenBSD"; return; }
    [ "$(id -u)" = 0 ] || echo "why=the recipe does not run as root there"
}

version() {
    echo "version=OpenBSD $(uname -r)"
}

family() {
    case $1 in *:*) echo inet6 ;; *) echo inet ;; esac
}

rules() {
    echo "set limit states ${STATES:-1000000}"
    echo "pass"
    [ "$TASK" = nat44 ] || return 0
    own=${POOL:-($OUTSIDE)}
    for network in $NETWORKS; do
        echo "match out on $OUTSIDE inet from $network nat-to $own"
    done
    [ -z "$TUNNEL_END" ] || echo "pass in quick on $OUTSIDE inet proto ipv6 to $own rdr-to $TUNNEL_END"
}

start() {
    set -e
    # What a start that was killed has noted is how it was before the lab changed it.
    if [ ! -e "$state" ]; then
        for key in $settings; do echo "$key=$(sysctl -n "$key")"; done >"$state.new"
        mv "$state.new" "$state"
    fi
    sysctl -q net.inet.ip.forwarding=1 net.inet6.ip6.forwarding=1
    for address in $INSIDE_ADDRESSES; do ifconfig "$INSIDE" "$(family "$address")" alias "$address"; done
    for address in $OUTSIDE_ADDRESSES; do ifconfig "$OUTSIDE" "$(family "$address")" alias "$address"; done
    ifconfig "$INSIDE" up
    ifconfig "$OUTSIDE" up
    for route in $ROUTES; do
        route -q add "-$(family "${route%,*}")" "${route%,*}" "${route#*,}"
    done
    rules | pfctl -q -f -
    pfctl -q -e 2>/dev/null || true
}

stop() {
    pfctl -q -F states
    pfctl -q -f /etc/pf.conf
    for route in $ROUTES; do
        route -q delete "-$(family "${route%,*}")" "${route%,*}" "${route#*,}"
    done
    for address in $INSIDE_ADDRESSES; do ifconfig "$INSIDE" "$(family "$address")" delete "${address%/*}"; done
    for address in $OUTSIDE_ADDRESSES; do ifconfig "$OUTSIDE" "$(family "$address")" delete "${address%/*}"; done
    [ ! -e "$state" ] || while read -r setting; do sysctl -q "$setting"; done <"$state"
    rm -f "$state" "$state.new"
}

restart() {
    pfctl -q -F states
}

# User, nice, system, spinning, interrupts, idle: in hundredths of a second.
cpu() {
    sysctl -n kern.cp_time | awk -F, '{ printf "busy_ns=%.0f\n", ($1 + $2 + $3 + $4 + $5) * 1e7 }'
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
    pfctl -s info | awk '/current entries/ { print "states=" $3 } /state-limit|memory / { print $1 "=" $2 }'
}

"$1"
