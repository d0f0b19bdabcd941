/**
 * Synonyms in developer docs, one group per line. Words of a group match each other when the goal is compared with the
 * docs. Groups also contain irregular forms that the stemmer doesn't map. A word may be in several groups.
 *
 * Neighbors by word vectors (GloVe, and others of developer docs) and synonyms of WordNet didn't help to find more answers: they are about other
 * subjects (`boots`: `shoes`), and include opposites (`upload`: `download`).
 */
const groups = `
undo undone undid revert rollback back-out
discard drop throw-away toss abandon revert
delete remove erase destroy rm prune purge drop
create add make new generate construct
build built compile bundle
change modify update edit alter adjust
rename retitle
copy duplicate clone replicate
cherry-pick pick copy
patch commit change changeset revision
move transfer migrate relocate
migrate migration upgrade
send sent transmit post deliver submit
receive fetch get retrieve obtain
fetch download pull retrieve
upload push
show shown display view print render
list enumerate
hide hidden mask redact conceal suppress omit
secret confidential sensitive private credential
password credential passphrase
auth authentication authenticate authorize authorization login signin sign-in log-in credential
login signin sign-in log-in
logout signout sign-out log-out
user account member person
config configuration configure setting settings option preference customize
parameter argument option flag switch
default fallback
install installation setup set-up
run ran execute launch start invoke
start begin launch boot
stop halt terminate kill end quit abort
restart reload rerun relaunch
reload refresh watch autoreload
pause suspend
resume continue
wait sleep delay block
timeout time-out deadline give-up
retry repeat
schedule cron timer periodic
process subprocess child-process
subprocess spawn child-process exec
capture record collect
output stdout print result
prompt request interactive input
error exception failure fault
fail failed failure
handle catch process
debug troubleshoot diagnose
log logging logger record
test testing spec
mock stub fake
verify validate check confirm compare
check inspect examine
find found search locate lookup look-up
filter select narrow
sort order arrange
page paginate pagination
at-a-time paginate pagination batch
limit restrict cap throttle
size length
large big huge
small tiny
shrink compact vacuum reduce compress
compress gzip shrink
fast quick speed performance
slow latency
cache memoize
store save persist keep kept
write wrote written
read load parse
load import read
import load ingest
export dump output
backup dump snapshot
restore recover
database db
table relation schema
row record entry tuple
column field
structure schema
query select
insert upsert
upsert insert-or-update
key index
transaction atomic
join combine merge
merge combine join
split divide separate
connect connection attach
disconnect close detach
connection session
session keep-alive persistent
reuse share pool
server backend host
client consumer
proxy intermediary gateway
network internet
request call
response reply answer
endpoint route url path address
route routing url
redirect forward
header metadata
body payload content
websocket socket
file document
folder directory path
path location
template layout view
extend inherit
override overwrite replace
replace substitute swap
page screen
form input
message notice notification flash
notice notification flash alert
notify notification alert
event signal hook
hook callback listener
custom own
plugin extension addon
module package library
dependency package
function method procedure
variable env environment
command cli
terminal console shell tty
progress progressbar percentage
color colour
encrypt encryption cipher
sign signature signing
token key credential
safe safely secure security
protect secure guard
permission access privilege role
share publish
publish release deploy
deploy deployment publish ship
version release revision
branch fork
recent last latest newest
first initial
parallel concurrent simultaneous
async asynchronous
thread worker
memory ram
count number
total sum
random arbitrary
unique distinct
automatic automatically auto
watch monitor observe
monitor observe metrics
email mail
image picture
date time timestamp
human people readable pretty
format pretty
`;

const keyOf = (name: string) => name.replaceAll("-", " ");

/** Names of several words that are searched for as one: "throw away". */
export const phrases: readonly string[] = [
  ...new Set(
    groups
      .split(/\s+/)
      .filter((name) => name.includes("-"))
      .map(keyOf),
  ),
].sort((a, b) => b.length - a.length);

/** For each name, the other names of all groups that contain it. */
export const synonyms: ReadonlyMap<string, readonly string[]> = (() => {
  const byName = new Map<string, Set<string>>();
  for (const line of groups.trim().split("\n")) {
    const names = line.trim().split(/\s+/).map(keyOf);
    for (const name of names) {
      const group = byName.get(name) ?? new Set();
      for (const other of names) if (other !== name) group.add(other);
      byName.set(name, group);
    }
  }
  return new Map([...byName].map(([name, others]) => [name, [...others]]));
})();
