# A Linux machine with one interface in an experiment, as its sender or receiver. Root's shell, and the commands ip, ping and iperf3, are there.

state="${SIXWAY_RECIPE_STATE:-/run}/sixway-host.$LINK"

about() {
    echo "what=Linux"
}

why_not() {
    for program in ip ping iperf3 awk; do
        command -v $program >/dev/null || { echo "why=$program is not installed there"; return; }
    done
    [ "$(id -u)" = 0 ] || echo "why=the recipe does not run as root there"
}

version() {
    echo "version=Linux $(uname -r), $(iperf3 --version | head -n 1)"
}

# Duplicate address detection would take a second, in which the address cannot be used. What an earlier run left is removed first.
start() {
    stop
    set -e
    : >"$state"
    ip link set "$LINK" up
    for address in $ADDRESSES; do
        case $address in
        *:*) ip address add "$address" dev "$LINK" nodad ;;
        *) ip address add "$address" dev "$LINK" ;;
        esac
    done
    ip neigh flush dev "$LINK"
    for route in $ROUTES; do ip route add "${route%,*}" via "${route#*,}" dev "$LINK"; done
    iperf3 -s -D -I "$state.pid"
    tries=0
    until [ -s "$state.pid" ]; do
        [ $tries -lt 50 ] || { echo "iperf3 did not start: is another one at its port?" >&2; exit 1; }
        tries=$((tries + 1))
        sleep 0.1
    done
}

stop() {
    [ -e "$state" ] || return 0
    # The file's last octet is not a digit.
    [ ! -e "$state.pid" ] || kill "$(tr -cd 0-9 <"$state.pid")" 2>/dev/null
    for route in $ROUTES; do ip route delete "${route%,*}" via "${route#*,}" dev "$LINK" 2>/dev/null; done
    for address in $ADDRESSES; do ip address delete "$address" dev "$LINK" 2>/dev/null; done
    rm -f "$state.pid" "$state"
}

clock() {
    now=$(date +%s%N)
    case $now in
    # A date without nanoseconds.
    *[!0-9]*) printf 'ns=%s000000000\nwithin_ns=1000000000\n' "$(date +%s)" ;;
    *) echo "ns=$now" ;;
    esac
}

# With a deadline, ping waits for late answers, and sends more than COUNT requests until it has as many answers: those are not counted.
round_trips() {
    ping -n -c "$COUNT" -i 0.002 -w $((COUNT / 100 + 3)) -s "$OCTETS" "$TARGET" | awk -v count="$COUNT" '
        /time=/ && !/DUP!/ {
            number = $0
            sub(/.*icmp_seq=/, "", number)
            if (number + 0 > count) next
            sub(/.*time=/, "")
            times = times " " $1
        }
        / packets transmitted/ { sent = $1 < count ? $1 : count }
        END {
            if (sent == "") exit 1
            print "sent=" sent
            print "times=" substr(times, 2)
        }'
}

# What the receiver has counted. An older iperf3 has no such figure for UDP.
send() {
    transport=
    [ "$TRANSPORT" = tcp ] || transport="-u -b 0"
    # shellcheck disable=SC2086
    iperf3 -c "$TARGET" --connect-timeout 3000 $transport -l "$OCTETS" -t "$DURATION" -J | awk '
        /"sum_received":/ { is_received = 1 }
        is_received && /"bits_per_second":/ { sub(/,$/, "", $2); bits = $2; is_received = 0 }
        /"error":/ { print >"/dev/stderr"; failed = 1 }
        END {
            if (bits == "" && !failed) print "iperf3 did not tell what the receiver has counted" >"/dev/stderr"
            if (bits == "" || failed) exit 1
            print "bits=" bits
        }'
}

"$1"
