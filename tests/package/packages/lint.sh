#!/usr/bin/env bash
# lint.sh PACKAGES: lintian finds no error in the Debian packages, and no warning but those named
# here.
set -euo pipefail
command -v lintian >/dev/null || {
	printf 'SKIPPED: lintian is not installed\n'
	exit 77
}
# The project has no mail address (a distributor sets RV_MAINTAINER). Instances of a template are
# named by a pattern, which deb-systemd-invoke does not take.
allowed=bogus-mail-host,bogus-mail-host-in-debian-changelog,maintainer-script-calls-systemctl
lintian --allow-root --fail-on error,warning --suppress-tags "$allowed" "$1"/*.deb
printf 'ok: lintian\n'
