# The first program of the guest. In front of this stand FOLDER (what it may write of the machine's files) and INIT (what it goes on with).
/bin/busybox mount -t devtmpfs dev /dev
for module in /modules/*; do
    /bin/busybox insmod "$module" || echo "the module $module was not loaded"
done
/bin/busybox mount -t virtiofs machine /host
/bin/busybox mount --bind /host /seen
/bin/busybox mount -o remount,bind,ro /seen
/bin/busybox mount --bind "/host$FOLDER" "/seen$FOLDER"
/bin/busybox mount --bind /dev /seen/dev
exec /bin/busybox chroot /seen /bin/sh "$INIT" </dev/console >/dev/console 2>&1
