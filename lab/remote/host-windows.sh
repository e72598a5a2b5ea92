# A Windows machine (10, Server 2019 or later) with one interface in an experiment, as its sender or receiver; the hosts of the paper of 2012 had
# Windows. The recipe runs on this machine (script:FILE) and sends commands by ssh: WINDOWS_HOST=administrator@address, exported before the lab is
# started. The machine has OpenSSH's server, and iperf3 (3.10 or later) in its path. LINK is the interface's alias, such as Ethernet2.

about() {
    echo "what=Windows"
}

# A script from standard input, to which errors are fatal.
powershell() {
    said=$({ echo '$ErrorActionPreference = "Stop"'; cat; } | ssh -o BatchMode=yes -o ConnectTimeout=10 "$WINDOWS_HOST" \
        'powershell -NoProfile -NonInteractive -Command "& ([ScriptBlock]::Create([Console]::In.ReadToEnd()))"') || exit 1
    echo "$said" | tr -d '\r'
}

why_not() {
    command -v ssh >/dev/null || { echo "why=ssh is not installed here"; return; }
    [ -n "$WINDOWS_HOST" ] || { echo "why=WINDOWS_HOST is not set"; return; }
    powershell <<'END'
$me = New-Object Security.Principal.WindowsPrincipal ([Security.Principal.WindowsIdentity]::GetCurrent())
if (-not $me.IsInRole([Security.Principal.WindowsBuiltInRole]::Administrator)) { "why=the recipe does not run as an administrator there" }
elseif (-not (Get-Command iperf3 -ErrorAction SilentlyContinue)) { "why=iperf3 is not installed there" }
END
}

version() {
    powershell <<'END'
"version=Windows " + [Environment]::OSVersion.Version + ", " + (iperf3 --version | Select-Object -First 1)
END
}

# What an earlier run left is removed first. Duplicate address detection would take a second, in which an address cannot be used. A process that ssh
# starts ends with its session, one that WMI starts does not.
start() {
    {
        removing
        echo "Get-NetIPInterface -InterfaceAlias '$LINK' | Select-Object ifIndex, AddressFamily, DadTransmits | Export-Clixml \"\$state.xml\""
        echo "Set-NetIPInterface -InterfaceAlias '$LINK' -DadTransmits 0"
        for address in $ADDRESSES; do
            echo "New-NetIPAddress -InterfaceAlias '$LINK' -IPAddress '${address%/*}' -PrefixLength ${address#*/} -PolicyStore ActiveStore | Out-Null"
        done
        for route in $ROUTES; do
            echo "New-NetRoute -InterfaceAlias '$LINK' -DestinationPrefix '${route%,*}' -NextHop '${route#*,}' -PolicyStore ActiveStore | Out-Null"
        done
        cat <<'END'
New-NetFirewallRule -Group sixway-lab -DisplayName sixway-lab-icmp4 -Direction Inbound -Protocol ICMPv4 -IcmpType 8 -Action Allow | Out-Null
New-NetFirewallRule -Group sixway-lab -DisplayName sixway-lab-icmp6 -Direction Inbound -Protocol ICMPv6 -IcmpType 128 -Action Allow | Out-Null
$iperf3 = (Get-Command iperf3).Source
New-NetFirewallRule -Group sixway-lab -DisplayName sixway-lab-iperf3 -Direction Inbound -Program $iperf3 -Action Allow | Out-Null
$server = Invoke-CimMethod -ClassName Win32_Process -MethodName Create -Arguments @{ CommandLine = "`"$iperf3`" -s" }
if ($server.ReturnValue -ne 0) { throw "iperf3 did not start" }
Set-Content "$state.pid" $server.ProcessId
END
    } | powershell
}

stop() {
    removing | powershell
}

# What is there no longer is no error.
removing() {
    cat <<'END'
$ErrorActionPreference = "SilentlyContinue"
$state = "$env:TEMP\sixway-lab"
if (Test-Path "$state.pid") { Get-Process -Id (Get-Content "$state.pid") | Where-Object Name -eq iperf3 | Stop-Process -Force }
if (Test-Path "$state.xml") {
    Import-Clixml "$state.xml" | ForEach-Object {
        Set-NetIPInterface -InterfaceIndex $_.ifIndex -AddressFamily $_.AddressFamily -DadTransmits $_.DadTransmits
    }
}
Remove-Item "$state.pid", "$state.xml"
Remove-NetFirewallRule -Group sixway-lab
END
    for route in $ROUTES; do
        echo "Remove-NetRoute -InterfaceAlias '$LINK' -DestinationPrefix '${route%,*}' -NextHop '${route#*,}' -Confirm:\$false"
    done
    for address in $ADDRESSES; do
        echo "Remove-NetIPAddress -InterfaceAlias '$LINK' -IPAddress '${address%/*}' -Confirm:\$false"
    done
    echo '$ErrorActionPreference = "Stop"'
}

# Ticks are 100 ns. The clock of an older machine advances every 16 ms only.
clock() {
    powershell <<'END'
"ns=" + (([DateTime]::UtcNow.Ticks - 621355968000000000) * 100)
"within_ns=16000000"
END
}

# Windows' ping waits a second between requests and has a resolution of a millisecond; .NET's sends the same requests, and a clock of 100 ns is around it.
# The first request also loads it, and is not counted.
round_trips() {
    powershell <<END
\$ping = New-Object Net.NetworkInformation.Ping
\$data = New-Object byte[] $OCTETS
\$ping.Send('$TARGET', 1000, \$data) | Out-Null
\$times = foreach (\$number in 1..$COUNT) {
    \$clock = [Diagnostics.Stopwatch]::StartNew()
    \$reply = \$ping.Send('$TARGET', 1000, \$data)
    \$took = \$clock.Elapsed.TotalMilliseconds
    if (\$reply.Status -eq 'Success') { \$took.ToString('F4', [Globalization.CultureInfo]::InvariantCulture) }
}
"sent=$COUNT"
"times=" + (\$times -join ' ')
END
}

# What the receiver has counted.
send() {
    transport=
    [ "$TRANSPORT" = tcp ] || transport="-u -b 0"
    powershell <<END
\$said = iperf3 -c $TARGET --connect-timeout 3000 $transport -l $OCTETS -t $DURATION -J | Out-String | ConvertFrom-Json
if (\$said.error) { throw \$said.error }
if (-not \$said.end.sum_received) { throw 'iperf3 did not tell what the receiver has counted' }
"bits=" + \$said.end.sum_received.bits_per_second.ToString('F0', [Globalization.CultureInfo]::InvariantCulture)
END
}

"$1"
