# The first process of a Linux guest. In front of this stand FOLDER (the network's folder), CONTROL (this guest's part of it) and
# MODULES (files to load, in their order). The host's files are the guest's own, read-only; in FOLDER it may write. HOSTFS is set if it must
# be mounted for that.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/ LC_ALL=C
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs run /run
[ -z "$HOSTFS" ] || mount -t hostfs -o "$FOLDER" none "$FOLDER"
for module in $MODULES; do
    busybox insmod "$module" || echo "$module" >>"$CONTROL/not-loaded"
done
for setting in accept_dad accept_ra router_solicitations; do
    echo 0 >/proc/sys/net/ipv6/conf/default/$setting
done
ip link set lo up
for device in /sys/class/net/eth*; do
    [ -e "$device" ] || continue
    for setting in accept_dad accept_ra router_solicitations; do
        echo 0 >/proc/sys/net/ipv6/conf/${device##*/}/$setting
    done
    ip link set "${device##*/}" up
done
: >"$CONTROL/up"
# Each line is the number of a script, or one with the name of a file whose first line is wanted: that starts no program, so it takes little of the
# CPU time that may be in it. Without lines this process waits in the kernel and costs nothing.
while read -r number file; do
    if [ -n "$file" ]; then
        read -r line <"$file"
        echo "$line" >"$CONTROL/$number.line"
        continue
    fi
    sh "$CONTROL/$number.sh" >"$CONTROL/$number.out" 2>"$CONTROL/$number.err" </dev/null
    echo $? >"$CONTROL/$number.status.new"
    mv "$CONTROL/$number.status.new" "$CONTROL/$number.status"
done
