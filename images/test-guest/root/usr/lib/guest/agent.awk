# QEMU's guest agent protocol: one request a line, one answer a line. What a request asks for is found by its keys, not
# by their order; strings are JSON's, without \u.

# JSON in: text() returns the string after "key":, number() the number.
function find(key,    at) {
    at = match($0, "\"" key "\" *: *")
    return at ? substr($0, at + RLENGTH) : ""
}
function string_in(rest,    out, char) {
    out = ""
    rest = substr(rest, 2)
    while (rest != "" && (char = substr(rest, 1, 1)) != "\"") {
        rest = substr(rest, 2)
        if (char == "\\") {
            char = substr(rest, 1, 1)
            rest = substr(rest, 2)
            if (char == "n") char = "\n"
            if (char == "t") char = "\t"
        }
        out = out char
    }
    REST = substr(rest, 2)
    return out
}
function text(key,    rest) {
    rest = find(key)
    return substr(rest, 1, 1) == "\"" ? string_in(rest) : ""
}
function number(key,    rest) {
    rest = find(key)
    return match(rest, /^-?[0-9]+/) ? substr(rest, 1, RLENGTH) : "0"
}

# JSON out.
function quoted(value) {
    gsub(/\\/, "\\\\", value)
    gsub(/"/, "\\\"", value)
    gsub(/\t/, "\\t", value)
    gsub(/[\001-\037]/, " ", value)
    return "\"" value "\""
}
function answer(value) {
    printf "{\"return\": %s}\n", value
    fflush()
}
function refuse(kind, why) {
    printf "{\"error\": {\"class\": \"%s\", \"desc\": %s}}\n", kind, quoted(why)
    fflush()
}

# What the system says.
function first_line(command,    line) {
    line = ""
    command | getline line
    close(command)
    return line
}
function shell(word) {
    gsub(/'/, "'\\''", word)
    return "'" word "'"
}

function info(    names, count, i, out) {
    count = split(COMMANDS, names, " ")
    for (i = 1; i <= count; i++)
        out = out (i > 1 ? ", " : "") "{\"name\": \"guest-" names[i] "\", \"enabled\": true, \"success-response\": true}"
    answer("{\"version\": \"9.2.0\", \"supported_commands\": [" out "]}")
}

function osinfo() {
    answer("{\"id\": \"virtops-guest\", \"name\": \"virtops test guest\", \"pretty-name\": \"virtops test guest 1\"," \
        " \"version\": \"1\", \"version-id\": \"1\", \"kernel-release\": " quoted(first_line("uname -r")) "," \
        " \"kernel-version\": " quoted(first_line("uname -v")) ", \"machine\": " quoted(first_line("uname -m")) "}")
}

# `ip -o addr`: "2: eth0    inet 10.0.2.2/24 ...". Each interface of /sys/class/net, with what that says of it.
function interfaces(    line, part, ip, address, name, mac, out, command) {
    command = "ip -o addr show"
    while ((command | getline line) > 0) {
        split(line, part, " ")
        if (part[3] != "inet" && part[3] != "inet6") continue
        split(part[4], ip, "/")
        name = part[2]
        address[name] = address[name] (address[name] == "" ? "" : ", ") "{\"ip-address-type\": \"" \
            (part[3] == "inet" ? "ipv4" : "ipv6") "\", \"ip-address\": \"" ip[1] "\", \"prefix\": " ip[2] + 0 "}"
    }
    close(command)
    command = "ls /sys/class/net"
    while ((command | getline name) > 0) {
        mac = first_line("cat /sys/class/net/" name "/address")
        out = out (out == "" ? "" : ", ") "{\"name\": " quoted(name) ", \"hardware-address\": " quoted(mac) \
            ", \"ip-addresses\": [" address[name] "]}"
    }
    close(command)
    answer("[" out "]")
}

# Who is logged in: nobody writes utmp here, but the shell of a login has a name of its own.
function users() {
    if (first_line("ps -o args | grep -c '^-sh'") == 0) answer("[]")
    else answer("[{\"user\": \"root\", \"login-time\": " first_line("date +%s") ".0}]")
}

# Disks that are mounted, and the root in memory: "tmpfs 59108 4 59104 0% /run", in KiB.
function fsinfo(    line, part, out, command) {
    command = "df -kT 2>/dev/null"
    while ((command | getline line) > 0) {
        if (split(line, part, " ") < 7 || part[2] == "Type") continue
        out = out (out == "" ? "" : ", ") "{\"name\": " quoted(part[1]) ", \"mountpoint\": " quoted(part[7]) \
            ", \"type\": " quoted(part[2]) ", \"used-bytes\": " sprintf("%.0f", part[4] * 1024) \
            ", \"total-bytes\": " sprintf("%.0f", part[3] * 1024) ", \"disk\": []}"
    }
    close(command)
    answer("[" out "]")
}

# Programs run beside the agent; what they print is kept until it is asked for.
function run(    path, rest, command, input, keep) {
    path = text("path")
    if (path == "") {
        refuse("GenericError", "guest-exec needs a path")
        return
    }
    command = shell(path)
    rest = find("arg")
    if (substr(rest, 1, 1) == "[") {
        rest = substr(rest, 2)
        while (match(rest, /^[ ,]*"/)) {
            command = command " " shell(string_in(substr(rest, RLENGTH)))
            rest = REST
        }
    }
    input = text("input-data")
    input = input == "" ? "" : "echo " shell(input) " | base64 -d | "
    keep = "/run/agent/" ++RUNS
    system("{ ( " input command " ) >" keep ".out 2>" keep ".err </dev/null; echo $? >" keep ".code; " \
        "mv " keep ".code " keep ".done; } &")
    answer("{\"pid\": " RUNS "}")
}

# The time is in nanoseconds, too many digits for awk's numbers.
function set_time(    time, seconds) {
    time = number("time")
    seconds = substr(time, 1, length(time) - 9)
    if (seconds == "") refuse("GenericError", "guest-set-time needs a time")
    else if (system("date -s @" seconds " >/dev/null") == 0) answer("{}")
    else refuse("GenericError", "cannot set the time")
}

function encoded(file) {
    return first_line("base64 -w 0 " file " 2>/dev/null")
}

function run_status(    keep, code) {
    keep = "/run/agent/" (number("pid") + 0)
    code = first_line("cat " keep ".done 2>/dev/null")
    if (code != "") {
        answer("{\"exited\": true, \"exitcode\": " code ", \"out-data\": \"" encoded(keep ".out") \
            "\", \"err-data\": \"" encoded(keep ".err") "\"}")
        system("rm -f " keep ".*")
    } else if (first_line("ls " keep ".out 2>/dev/null") != "")
        answer("{\"exited\": false}")
    else
        refuse("GenericError", "Invalid parameter 'pid'")
}

function serve(request,    command) {
    $0 = request
    sub(/^\377+/, "")
    command = text("execute")
    if (command == "") return
    if (command == "guest-sync") answer(number("id"))
    else if (command == "guest-sync-delimited") { printf "\377"; answer(number("id")) }
    else if (command == "guest-ping") answer("{}")
    else if (command == "guest-info") info()
    else if (command == "guest-fsfreeze-status") answer(FROZEN ? "\"frozen\"" : "\"thawed\"")
    else if (command == "guest-fsfreeze-freeze") { FROZEN = 1; answer("1") }
    else if (command == "guest-fsfreeze-thaw") { answer(FROZEN); FROZEN = 0 }
    else if (FROZEN) refuse("CommandNotFound", "The command " command " has been disabled: the agent is in frozen state")
    else if (command == "guest-get-osinfo") osinfo()
    else if (command == "guest-get-host-name") answer("{\"host-name\": " quoted(first_line("hostname")) "}")
    else if (command == "guest-get-timezone") answer("{\"zone\": " quoted(first_line("date +%Z")) ", \"offset\": 0}")
    else if (command == "guest-get-time") answer(first_line("date +%s") "000000000")
    else if (command == "guest-set-time") set_time()
    else if (command == "guest-network-get-interfaces") interfaces()
    else if (command == "guest-get-users") users()
    else if (command == "guest-get-fsinfo") fsinfo()
    else if (command == "guest-exec") run()
    else if (command == "guest-exec-status") run_status()
    else if (command == "guest-shutdown") system(text("mode") == "reboot" ? "reboot" : "poweroff")
    else refuse("CommandNotFound", "The command " command " has not been found")
}

BEGIN {
    RUNS = 0
    COMMANDS = "sync-delimited sync ping get-time info shutdown network-get-interfaces get-fsinfo get-host-name" \
        " set-time get-users get-timezone get-osinfo fsfreeze-status fsfreeze-freeze fsfreeze-thaw exec exec-status"
    FROZEN = 0
    serve(ENVIRON["REQUEST"]) # the first, which the shell has read
}

{ serve($0) }
