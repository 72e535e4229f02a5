# Judges packages by the tools of two distributions. Runs in a Debian root directory. $1: a directory with HotSwap's packages, an
# installation (`stage`) and the files of packaging/rpm (`rpm`).
cd "$1"
apt-get update -q -o Acquire::Check-Valid-Until=false >/dev/null
apt-get install -q -y --no-install-recommends lintian rpm rpmlint >apt.log 2>&1 || {
    cat apt.log
    exit 1
}
lintian --version
ln -sf debian /etc/dpkg/origins/default # as the scripts of base-files do
lintian --allow-root --tag-display-limit 0 --fail-on error,warning ./*hotswap*.deb
echo "lintian found no error and no warning in $(ls ./*hotswap*.deb | wc -l) packages"

rpmbuild -bb --quiet --define "_topdir $1/made" --define "_libdir /usr/lib64" --define "hotswap_stage $1/stage" \
    --define "_sourcedir $1/rpm" rpm/hotswap.spec >rpm.log 2>&1 || {
    cat rpm.log
    exit 1
}
rpmlint --version
rpmlint --strict -c rpm/rpmlint.toml made/RPMS/*/*.rpm rpm/hotswap.spec >rpmlint.log || {
    cat rpmlint.log
    exit 1
}
# Without --strict warnings do not fail; the summary counts them.
grep -E '0 errors, 0 warnings' rpmlint.log || {
    cat rpmlint.log
    exit 1
}
