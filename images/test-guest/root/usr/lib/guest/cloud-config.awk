# Reads the part of #cloud-config that the test guest knows, and writes it as plain files below `out`: hostname,
# ssh_authorized_keys, passwords (root:...), runcmd (a shell script). Prints a line for everything it does not know.
#
# The YAML that it understands: top-level keys; sequences in block or in one-line flow style, nested once; plain and
# quoted scalars; literal (|) and folded (>) blocks. Anything else is named, not guessed.

{
    sub(/\r$/, "")
    raw[NR] = $0
    match($0, /^ */)
    indent[NR] = RLENGTH
    blank[NR] = $0 ~ /^[ \t]*(#.*)?$/
}

END {
    for (first = 1; first <= NR; first = last + 1) {
        last = first
        if (blank[first] || raw[first] ~ /^---/) continue
        if (raw[first] !~ /^[A-Za-z_][A-Za-z0-9_-]*:([ \t].*)?$/) {
            print "line " first " of #cloud-config is not understood: " raw[first]
            continue
        }
        key = value = raw[first]
        sub(/:.*/, "", key)
        sub(/^[^:]*:[ \t]*/, "", value)
        if (value ~ /^#/) value = ""
        while (last < NR && (blank[last + 1] || indent[last + 1] > 0 || (value == "" && raw[last + 1] ~ /^-([ \t]|$)/))) last++
        take(key, value, first + 1, last)
    }
}

function take(key, value, from, to) {
    if (key == "hostname") put("hostname", scalar(value))
    else if (key == "fqdn") { if (!("hostname" in written)) put("hostname", stem(scalar(value))) }
    else if (key == "password") put("passwords", "root:" scalar(value))
    else if (key == "ssh_authorized_keys" || key == "runcmd") sequence(key, value, from, to)
    else if (key == "chpasswd") chpasswd(value, from, to)
    else if (key !~ /^(ssh_pwauth|manage_etc_hosts|preserve_hostname)$/) print "#cloud-config key " key " is not known to this guest and is ignored"
}

function put(file, text) {
    if (file == "hostname" || !(file in written)) printf "" > (out "/" file)
    written[file] = 1
    print text >> (out "/" file)
    close(out "/" file)
}

function stem(name) { sub(/\..*/, "", name); return name }

# The `list` of chpasswd: lines `user:password`, as a block or as a sequence. Only root exists here.
function chpasswd(value, from, to, at, text, part, count, one) {
    for (at = from; at <= to; at++) {
        if (blank[at]) continue
        text = raw[at]
        sub(/^ */, "", text)
        if (text ~ /^expire:/ || text ~ /^list:/) continue
        sub(/^- */, "", text)
        text = scalar(text)
        if (text ~ /^root:/) put("passwords", text)
        else print "chpasswd entry for another user than root is ignored"
    }
}

function sequence(key, value, from, to, at, end, depth, text, parts, count, one) {
    if (value ~ /^\[/) {
        count = split(flow(value), parts, SUBSEP)
        for (one = 1; one <= count; one++) item(key, parts[one])
        return
    }
    if (value != "") { print "#cloud-config key " key " is not a list and is ignored"; return }
    depth = -1
    for (at = from; at <= to; at = end + 1) {
        end = at
        if (blank[at]) continue
        if (depth < 0) depth = indent[at]
        text = substr(raw[at], depth + 1)
        if (indent[at] != depth || text !~ /^-([ \t]|$)/) { print "line " at " of #cloud-config is not understood: " raw[at]; continue }
        while (end < to && (blank[end + 1] || indent[end + 1] > depth)) end++
        sub(/^-[ \t]*/, "", text)
        block_item(key, text, at, end, depth)
    }
}

# One entry of a block sequence: its own line after the dash, and the deeper lines `at + 1`..`end`.
function block_item(key, text, at, end, depth, line, arguments, inner) {
    if (text ~ /^[|>][-+]?[ \t]*(#.*)?$/) { item(key, block(at + 1, end, substr(text, 1, 1))); return }
    if (text ~ /^-[ \t]/ || (text == "" && at < end)) {
        if (text != "") { sub(/^-[ \t]*/, "", text); arguments = quoted(scalar(text)) }
        for (line = at + 1; line <= end; line++) {
            if (blank[line]) continue
            inner = raw[line]
            if (inner !~ /^ *-[ \t]/) { print "line " line " of #cloud-config is not understood: " raw[line]; continue }
            sub(/^ *-[ \t]*/, "", inner)
            arguments = arguments (arguments == "" ? "" : " ") quoted(scalar(inner))
        }
        put(key, arguments)
        return
    }
    for (line = at + 1; line <= end; line++) {
        if (blank[line]) continue
        inner = raw[line]
        sub(/^ */, "", inner)
        text = text " " inner
    }
    item(key, text)
}

# A string is a command line as it is; a list in flow style is a command with its arguments.
function item(key, text, parts, count, one, arguments) {
    if (text !~ /^[ \t]*\[/) { put(key, text ~ /\n/ ? text : scalar(text)); return }
    count = split(flow(text), parts, SUBSEP)
    for (one = 1; one <= count; one++) arguments = arguments (one == 1 ? "" : " ") quoted(scalar(parts[one]))
    put(key, arguments)
}

# A literal or folded block: ends in a newline, so that item() takes it as it is.
function block(from, to, style, at, depth, text) {
    depth = -1
    for (at = from; at <= to; at++) {
        if (depth < 0 && raw[at] ~ /[^ \t]/) depth = indent[at]
        text = text substr(raw[at], depth + 1) (style == ">" && at < to ? " " : "\n")
    }
    sub(/[ \n]+$/, "", text)
    return text "\n"
}

function trimmed(text) { gsub(/^[ \t]+|[ \t]+$/, "", text); return text }

# A shell word. Not by gsub(): implementations disagree about backslashes in a replacement.
function quoted(text, parts, count, one, word) {
    count = split(text, parts, "'")
    for (one = 1; one <= count; one++) word = word (one == 1 ? "" : "'\\''") parts[one]
    return "'" word "'"
}

function scalar(text, plain, at, letter) {
    text = trimmed(text)
    if (text ~ /^'/) {
        text = substr(text, 2)
        while ((at = index(text, "'")) > 0) {
            plain = plain substr(text, 1, at - 1)
            if (substr(text, at, 2) != "''") return plain
            plain = plain "'"
            text = substr(text, at + 2)
        }
        return plain text
    }
    if (text ~ /^"/) {
        for (at = 2; at <= length(text); at++) {
            letter = substr(text, at, 1)
            if (letter == "\"") return plain
            if (letter == "\\") {
                letter = substr(text, ++at, 1)
                if (letter == "n") letter = "\n"
                else if (letter == "t") letter = "\t"
            }
            plain = plain letter
        }
        return plain
    }
    sub(/[ \t]+#.*/, "", text)
    return text
}

# The elements of a one-line flow sequence, joined by SUBSEP; a nested sequence stays in its brackets. A quote opens a
# string only where an element begins: the one in `it's` does not.
function flow(text, at, letter, depth, quote, begun, found) {
    for (at = 1; at <= length(text); at++) {
        letter = substr(text, at, 1)
        if (quote != "") {
            if (quote == "\"" && letter == "\\") { found = found letter; letter = substr(text, ++at, 1) }
            else if (letter == quote) quote = ""
        } else if (!begun && (letter == "\"" || letter == "'")) { quote = letter; begun = 1 }
        else if (letter == "[" && !begun) { if (depth++ == 0) continue }
        else if (letter == "]" && --depth == 0) break
        else if (letter == ",") { begun = 0; if (depth == 1) { found = found SUBSEP; continue } }
        else if (letter != " " && letter != "\t") begun = 1
        found = found letter
    }
    return found
}
