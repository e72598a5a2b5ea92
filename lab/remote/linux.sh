# A Linux machine between two interfaces. Root's shell, and the commands ip, nft and sysctl, are there.

settings="net.ipv4.ip_forward net.ipv6.conf.all.forwarding"
state="${SIXWAY_RECIPE_STATE:-/run}/sixway-recipe.$INSIDE"

about() {
    echo "what=Linux"
    # A site's gateway advertises its prefix.
    site=
    ! command -v radvd >/dev/null || site=,site-gateway
    echo "tasks=forwarder,nat44,6to4-relay,6to4-router,end-of-a-configured-tunnel$site"
}

why_not() {
    for program in ip nft sysctl; do
        command -v $program >/dev/null || { echo "why=$program is not installed there"; return; }
    done
    [ "$(id -u)" = 0 ] || echo "why=the recipe does not run as root there"
}

version() {
    echo "version=Linux $(uname -r)"
}

# The 6to4 prefix of an IPv4 address.
six_to_four() {
    # shellcheck disable=SC2046
    printf '2002:%02x%02x:%02x%02x' $(echo "$1" | tr . ' ')
}

# Its prefix is that of the NAT in front of it, if there is one.
six_to_four_tunnel() {
    ip tunnel add sixway6 mode sit remote any local "$ADDRESS" ttl 64
    ip address add "$(six_to_four "${NAT:-$ADDRESS}")::1/16" dev sixway6
    ip link set sixway6 up
    [ -z "$RELAY" ] || ip -6 route add default via "::$RELAY" dev sixway6
}

# ADDRESS or nothing: the addresses that hosts inside share.
nat() {
    to=masquerade
    [ -z "$1" ] || to="snat to $1"
    nft add table ip sixway_recipe
    nft add chain ip sixway_recipe leaving '{ type nat hook postrouting priority srcnat; }'
    for network in $NETWORKS; do
        # shellcheck disable=SC2086
        nft add rule ip sixway_recipe leaving ip saddr "$network" oifname "$OUTSIDE" $to
    done
    [ -n "$TUNNEL_END" ] || return 0
    nft add chain ip sixway_recipe arriving '{ type nat hook prerouting priority dstnat; }'
    nft add rule ip sixway_recipe arriving iifname "$OUTSIDE" ip protocol 41 dnat to "$TUNNEL_END"
}

# Hosts inside have subnet 1 of the site's prefix.
advertise() {
    prefix="$(six_to_four "${NAT:-$ADDRESS}"):1::/64"
    echo "interface $INSIDE { AdvSendAdvert on; MinRtrAdvInterval 3; MaxRtrAdvInterval 4; prefix $prefix { }; };" >"$state.radvd"
    radvd -C "$state.radvd" -p "$state.pid" -m none -u root
}

tunnel() {
    case $TASK in
    6to4-relay | 6to4-router) six_to_four_tunnel ;;
    site-gateway)
        nat "$NAT"
        six_to_four_tunnel
        advertise
        ;;
    end-of-a-configured-tunnel)
        ip tunnel add sixway6 mode sit remote "$REMOTE" local "$LOCAL" ttl 64
        ip link set sixway6 up
        for prefix in $PREFIXES; do ip -6 route add "$prefix" dev sixway6; done
        ;;
    nat44) nat "$POOL" ;;
    forwarder) ;;
    *)
        echo "no such task: $TASK" >&2
        exit 1
        ;;
    esac
}

start() {
    set -e
    # What a start that was killed has noted is how it was before the lab changed it.
    if [ ! -e "$state" ]; then
        for key in $settings; do echo "$key=$(sysctl -n $key)"; done >"$state.new"
        mv "$state.new" "$state"
    fi
    for key in $settings; do sysctl -q -w "$key=1"; done
    for interface in "$INSIDE" "$OUTSIDE"; do ip link set "$interface" up; done
    for address in $INSIDE_ADDRESSES; do ip address add "$address" dev "$INSIDE"; done
    for address in $OUTSIDE_ADDRESSES; do ip address add "$address" dev "$OUTSIDE"; done
    for route in $ROUTES; do ip route add "${route%,*}" via "${route#*,}"; done
    tunnel
}

stop() {
    [ ! -e "$state.pid" ] || kill "$(cat "$state.pid")" 2>/dev/null
    nft delete table ip sixway_recipe 2>/dev/null
    ip link delete sixway6 2>/dev/null
    for route in $ROUTES; do ip route delete "${route%,*}" via "${route#*,}" 2>/dev/null; done
    for address in $INSIDE_ADDRESSES; do ip address delete "$address" dev "$INSIDE" 2>/dev/null; done
    for address in $OUTSIDE_ADDRESSES; do ip address delete "$address" dev "$OUTSIDE" 2>/dev/null; done
    [ ! -e "$state" ] || while read -r setting; do sysctl -q -w "$setting"; done <"$state"
    rm -f "$state" "$state.new" "$state.radvd" "$state.pid"
}

restart() {
    ip neigh flush all
    ip -6 route flush cache
}

# In ticks of 10 ms: user, nice, system, idle, waiting, interrupts, soft interrupts.
cpu() {
    read -r _ user nice system _ _ irq soft _ </proc/stat
    echo "busy_ns=$(((user + nice + system + irq + soft) * 10000000))"
}

memory() {
    awk '/^MemTotal/ { all = $2 } /^MemAvailable/ { printf "octets=%.0f\n", (all - $2) * 1024 }' /proc/meminfo
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
    for interface in "$INSIDE" "$OUTSIDE"; do
        for name in rx_dropped tx_dropped; do
            echo "$interface-$name=$(cat "/sys/class/net/$interface/statistics/$name" 2>/dev/null || echo 0)"
        done
    done
}

"$1"
