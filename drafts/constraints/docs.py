import os
os.chdir('/work/h/import')
def sub(p,a,b,n=1):
    s=open(p).read(); assert a in s,(p,a); s=s.replace(a,b,n); open(p,'w').write(s)
sub('docs/reference/assignment.md','| `constraints` | list | allowed actions; empty in this version | nothing yet |','| `constraints` | list | what the holder is held to, see below | the grant: the map\'s rule and role, `claim --constraint`; a takeover keeps them |')
sub('docs/reference/assignment.md','''## How it ends
''','''## What it allows

A constraint only narrows. Where any of a kind is given, what none of that kind names is not allowed.

| constraint | allows | held by |
|---|---|---|
| `path:GLOB` | changes of these paths, within the task's scope | git's hooks, `merge`, the guard of clients' tools: `scope_violation` |
| `verb:NAME` | of `note check handoff block complete merge edit` these; renewing and releasing always | every door, for agents: `not_permitted` |
| `command:WORDS` | lines of a client's shell whose commands begin so; a line that hides commands (`$(…)`) is not | the guard of clients' tools (`onus hook agent`) |
| `network:none` | checks without the network | checks run in the sandbox `bubblewrap`, also at a merge |

    onus claim API-12 --for @bot --constraint 'path:docs/**' --constraint verb:note

They are told by the claim, `show`, `prime`, MCP's `claim`, and in the ledger's entry of the grant. What an agent runs
outside its client's shell, and what a process does to the network outside a check, Onus does not see.

## How it ends
''')
sub('docs/reference/identity-map.md','''| `independent` | who built what''','''| `constraints` | what whoever gets such a task is held to: `path:GLOB`, `verb:NAME`, `command:WORDS`, `network:none` ([assignment.md](assignment.md#what-it-allows)); a role may have them as well |
| `independent` | who built what''')
sub('CHANGELOG.md','''- `onus show PF-001` finds''','''- Constraints of an assignment (`claim --constraint path:GLOB | verb:NAME | command:WORDS | network:none`, `constraints` of a rule or a
  role in the identity map): told to the holder by claim, show, prime and MCP; held by git's hooks, merge, every door, the guard of
  clients' tools and the checks' sandbox. A takeover keeps them.
- `rerun` makes a retired workstation again that was made for its task alone.
- `onus show PF-001` finds''')
