//! What a database server can suffer from. Its pages are its own business: `pg_amcheck` looks at them.

use super::Outcome::{Ill, Well};
use super::{CheckView, Examined, Outcome, others, view};
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use onus_store::postgres::{Modes, Postgres};

impl Examined for Postgres {
    fn examine(&mut self) -> Vec<CheckView> {
        let modes = self.modes().map_err(Refusal::from);
        vec![
            view("schema", modes.as_ref().map(schema).map_err(Clone::clone)),
            view("durability", modes.as_ref().map(durability).map_err(Clone::clone)),
            view("references", references(self)),
        ]
    }
}

fn schema(modes: &Modes) -> Outcome {
    if modes.schema == modes.latest_schema {
        return Well(format!("schema {}, PostgreSQL {}", modes.schema, modes.server));
    }
    let detail = format!("schema {}, this program has {}", modes.schema, modes.latest_schema);
    Ill(Code::StoreUnavailable, detail, "install a newer onus")
}

fn durability(modes: &Modes) -> Outcome {
    let off: Vec<&str> = [
        ("fsync", &modes.fsync),
        ("full_page_writes", &modes.full_page_writes),
        ("synchronous_commit", &modes.synchronous_commit),
    ]
    .into_iter()
    .filter(|(_, value)| value.as_str() == "off")
    .map(|(name, _)| name)
    .collect();
    match off.first() {
        None => Well(format!("synced at every commit (synchronous_commit = {})", modes.synchronous_commit)),
        Some(_) => Ill(
            Code::StoreUnavailable,
            format!("{} = off: a crash could take back what was acknowledged", off.join(" = off, ")),
            "switch it on in postgresql.conf",
        ),
    }
}

fn references(store: &mut Postgres) -> Result<Outcome, Refusal> {
    let unenforced = store.unenforced()?;
    Ok(match unenforced.first() {
        None => Well("every index is whole and every reference is enforced".into()),
        Some(first) => {
            let detail = format!("{first}{}", others(&unenforced));
            Ill(Code::StoreUnavailable, detail, "REINDEX it, or switch the reference on again")
        }
    })
}
