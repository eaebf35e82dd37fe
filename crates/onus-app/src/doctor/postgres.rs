//! What a database server can suffer from. Its pages are its own business: `pg_amcheck` looks at them.

use super::CheckOutcome::{Ill, Well};
use super::{CheckOutcome, CheckView, Examined, others, view};
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use onus_store::postgres::{Modes, Postgres};

impl Examined for Postgres {
    fn examine(&mut self) -> Vec<CheckView> {
        let modes = self.modes().map_err(Refusal::from);
        vec![
            view("schema", modes.clone().and_then(|modes| schema(self, &modes))),
            view("durability", modes.as_ref().map(durability).map_err(Clone::clone)),
            view("references", references(self)),
        ]
    }
}

fn schema(store: &mut Postgres, modes: &Modes) -> Result<CheckOutcome, Refusal> {
    if modes.schema != modes.latest_schema {
        let detail = format!("schema {}, this program has {}", modes.schema, modes.latest_schema);
        return Ok(Ill(Code::StoreUnavailable, detail, "install a newer onus"));
    }
    let strange = store.strange_schema()?;
    Ok(match strange.first() {
        None => Well(format!("schema {}, PostgreSQL {}", modes.schema, modes.server)),
        Some(first) => Ill(
            Code::StoreUnavailable,
            format!("somebody changed the tables: {first}{}", others(&strange)),
            super::MEND_TABLES,
        ),
    })
}

fn durability(modes: &Modes) -> CheckOutcome {
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

fn references(store: &mut Postgres) -> Result<CheckOutcome, Refusal> {
    let unenforced = store.unenforced()?;
    Ok(match unenforced.first() {
        None => Well("every index is whole and every reference is enforced".into()),
        Some(first) => {
            let detail = format!("{first}{}", others(&unenforced));
            Ill(Code::StoreUnavailable, detail, "REINDEX it, or switch the reference on again")
        }
    })
}
