#!/bin/sh
# Make the secrets of compose.cluster.yaml in the folder that is named: sudo sh deploy/cluster-secrets.sh deploy/secrets
# A file that exists is kept, so the script can be run again. Each file belongs to the one user that reads it.
set -eu
[ $# -eq 1 ] || { echo "usage: sh deploy/cluster-secrets.sh FOLDER" >&2; exit 2; }
folder=$1
gateway=10001 database=999 bus=999 prometheus=65534

random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }

# keep NAME OWNER VALUE
keep() {
    if [ -e "$folder/$1" ]; then
        echo "kept    $folder/$1"
        return
    fi
    (umask 077 && printf '%s\n' "$3" >"$folder/$1")
    chmod 0400 "$folder/$1"
    chown "$2" "$folder/$1"
    echo "made    $folder/$1"
}

mkdir -p "$folder"
keep database-password "$database" "$(random)"
keep database-url "$gateway" "postgresql://parlour:$(cat "$folder/database-password")@postgres/parlour"
keep bus-password "$bus" "$(random)"
keep bus-url "$gateway" "redis://:$(cat "$folder/bus-password")@valkey:6379/0"
keep metrics-token "$gateway" "$(random)"
keep prometheus-token "$prometheus" "$(cat "$folder/metrics-token")"
