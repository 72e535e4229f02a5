# engine.sh NUMBER: storage, action cache and execution of the Remote Execution API on a port of the loopback device.
mkdir -p /var/tmp/store
exec buildbox-casd --bind="127.0.0.1:5005$1" --buildbox-run=/usr/bin/buildbox-run-bubblewrap \
    --runner-arg=--staging-mode=copy-or-link --jobs=1 /var/tmp/store >/var/tmp/log 2>&1
