#!/bin/bash
# The first process of a test's node, in its own network, mount and process namespace. When it is killed, all of the node is.
# $NODE is the node's folder, $KUBELET the program, "$@" are its flags.
set -eu
mount --make-rshared /

# The node has its own state, not the machine's.
for place in run/containerd var/lib/kubelet var/log/pods var/log/containers; do
  mkdir -p "/$place" "$NODE/$place"
  mount --bind "$NODE/$place" "/$place"
done
mount --make-rshared /var/lib/kubelet
mount --make-rshared /run/containerd
mount --bind "$NODE/resolv.conf" /etc/resolv.conf
mkdir -p /run/netns
mount -t tmpfs tmpfs /run/netns

containerd --config "$NODE/containerd.toml" >"$NODE/containerd.log" 2>&1 &
until ctr version >/dev/null 2>&1; do sleep 0.05; done
# Each archive is taken once: what it brought is still on the disk when the node is started again.
shopt -s nullglob
for image in "$NODE"/images/*; do
  ctr --namespace k8s.io images import "$image" >/dev/null
  rm "$image"
done

# The kubelet sets some values of the whole machine. It sees files with its values in their place; containerd must not,
# for the kernel gives no /proc to a pod of its own users where one has mounts on it.
cat >"$NODE/kubelet.sh" <<'KUBELET'
set -eu
mount --make-rprivate /proc
cover() {
  echo "$2" >"$NODE/sysctl-${1//\//-}"
  mount --bind "$NODE/sysctl-${1//\//-}" "/proc/sys/$1"
}
cover vm/overcommit_memory 1
cover vm/panic_on_oom 0
cover kernel/panic 10
cover kernel/panic_on_oops 1
cover kernel/keys/root_maxkeys 1000000
cover kernel/keys/root_maxbytes 25000000
exec "$KUBELET" "$@"
KUBELET
unshare --mount --propagation unchanged bash "$NODE/kubelet.sh" "$@" >"$NODE/kubelet.log" 2>&1 &

# Processes whose parent has gone become this one's children; it collects those that end.
while :; do wait -n || sleep 0.2; done
