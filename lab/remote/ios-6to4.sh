# A Cisco router with IOS between two interfaces, as in the paper of 2012 (there a 2821). The recipe runs on this machine (script:FILE) and
# sends commands to the router by ssh: IOS_HOST=user@address, exported before the lab is started.

about() {
    echo "what=Cisco IOS"
    echo "tasks=forwarder,6to4-relay,6to4-router"
}

why_not() {
    command -v ssh >/dev/null || { echo "why=ssh is not installed here"; return; }
    [ -n "$IOS_HOST" ] || echo "why=IOS_HOST is not set"
}

# Commands from standard input, one a line, as one would type them.
send() {
    ssh -o BatchMode=yes -o ConnectTimeout=10 "$IOS_HOST"
}

configure() {
    { echo "configure terminal"; cat; echo "end"; } | send >/dev/null
}

version() {
    echo "version=$(echo 'show version | include Version' | send | tr -d '\r' | sed -n 's/.*\(IOS.*Version [^,]*\).*/\1/p' | head -1)"
}

# The netmask of a prefix length.
netmask() {
    echo "$1" | awk '{ for (i = 0; i < 4; i++) { n = $1 > 8 ? 8 : $1; $1 -= n; printf "%s%d", i ? "." : "", 256 - 2 ^ (8 - n) } print "" }'
}

addresses() {
    echo "interface $1"
    for address in $2; do
        case $address in
        *:*) echo " $3ipv6 address $address" ;;
        *) echo " $3ip address ${address%/*} $(netmask "${address#*/}")" ;;
        esac
    done
    [ -n "$3" ] || echo " no shutdown"
}

routes() {
    for route in $ROUTES; do
        destination=${route%,*}
        case $destination in
        default) case ${route#*,} in *:*) destination=::/0 ;; *) destination=0.0.0.0/0 ;; esac ;;
        esac
        case $destination in
        *:*) echo "$1ipv6 route $destination ${route#*,}" ;;
        */*) echo "$1ip route ${destination%/*} $(netmask "${destination#*/}") ${route#*,}" ;;
        *) echo "$1ip route $destination 255.255.255.255 ${route#*,}" ;;
        esac
    done
}

six_to_four() {
    # shellcheck disable=SC2046
    printf '2002:%02x%02x:%02x%02x' $(echo "$1" | tr . ' ')
}

# The interface that has the tunnel's IPv4 address.
carrier() {
    case " $INSIDE_ADDRESSES " in *" $ADDRESS/"*) echo "$INSIDE" ;; *) echo "$OUTSIDE" ;; esac
}

tunnel() {
    echo "interface Tunnel2002"
    echo " ipv6 address $(six_to_four "$ADDRESS")::1/128"
    echo " tunnel source $(carrier)"
    echo " tunnel mode ipv6ip 6to4"
    echo "ipv6 route 2002::/16 Tunnel2002"
    [ -z "$RELAY" ] || echo "ipv6 route ::/0 $(six_to_four "$RELAY")::1"
}

commands() {
    echo "ipv6 unicast-routing"
    addresses "$INSIDE" "$INSIDE_ADDRESSES" ""
    addresses "$OUTSIDE" "$OUTSIDE_ADDRESSES" ""
    routes ""
    case $TASK in 6to4-*) tunnel ;; esac
}

start() {
    commands | configure
}

stop() {
    {
        case $TASK in
        6to4-*)
            [ -z "$RELAY" ] || echo "no ipv6 route ::/0 $(six_to_four "$RELAY")::1"
            echo "no ipv6 route 2002::/16 Tunnel2002"
            echo "no interface Tunnel2002"
            ;;
        esac
        routes "no "
        addresses "$INSIDE" "$INSIDE_ADDRESSES" "no "
        addresses "$OUTSIDE" "$OUTSIDE_ADDRESSES" "no "
    } | configure
}

restart() {
    printf 'clear arp-cache\nclear ipv6 neighbors\n' | send >/dev/null
}

# NUMBER: whether it is digits only. A shell may run commands that other text has when it computes with it.
is_number() {
    case $1 in '' | *[!0-9]*) return 1 ;; esac
}

# IOS says shares, not times: the share of the last five seconds holds for the time since it was asked before. An estimate.
cpu() {
    folder=${XDG_RUNTIME_DIR:-/run}/sixway-ios
    mkdir -m 700 "$folder" 2>/dev/null
    # A link, and a folder of another user, could hold anything.
    if [ -z "$(find "$folder" -prune -type d -user "$(id -u)" -perm 700)" ]; then
        echo "$folder is not a folder of this user alone" >&2
        exit 1
    fi
    kept=$folder/cpu
    now=$(date +%s)
    read -r sum before 2>/dev/null <"$kept"
    { is_number "$sum" && is_number "$before"; } || { sum=0; before=$now; }
    share=$(echo 'show processes cpu | include five seconds' | send | tr -d '\r' |
        sed -n 's/.*five seconds: *0*\([0-9]*\)%.*/\1/p' | head -1)
    sum=$((sum + ${share:-0} * 10000000 * (now - before)))
    echo "$sum $now" >"$kept"
    echo "busy_ns=$sum"
}

memory() {
    printf 'show processes memory | include Processor\n' | send | tr -d '\r' |
        awk '/Processor/ { for (i = 1; i < NF; i++) if ($i == "Used:") { print "octets=" $(i + 1); exit } }'
}

# It writes its time to the milliseconds, but in a zone of its own: nothing is said.
clock() {
    :
}

counters() {
    printf 'show interfaces | include drops\n' | send | tr -d '\r' |
        awk '/drops/ { n = $NF; gsub(/[^0-9]/, "", n); sum += n } END { print "output-drops=" sum + 0 }'
}

"$1"
