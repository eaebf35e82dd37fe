//! `localstack:URL`: LocalStack says that the named services work.

use super::{Clock, Seen, http};
use onus_core::id::shown;
use onus_core::probe::Url;
use serde_json::{Map, Value};

const HEALTH: &str = "/_localstack/health";
/// A service starts when it is first used; until then it is available.
const WORKING: &[&str] = &["running", "available"];

pub(super) fn see(url: &Url, services: &[String], clock: &Clock) -> Result<Seen, Seen> {
    let mut response = http::get(url, &format!("{url}{HEALTH}"), clock)?;
    let status = response.status().as_u16();
    if status != 200 {
        return Err(Seen::failed(format!("status {status} at {HEALTH}, expected 200")));
    }
    let health = http::json(&mut response, clock)?;
    let Some(known) = health.get("services").and_then(Value::as_object) else {
        return Err(Seen::failed(format!("there are no services at {HEALTH}: is this LocalStack?")));
    };
    judge(known, services)
}

fn judge(known: &Map<String, Value>, services: &[String]) -> Result<Seen, Seen> {
    if services.is_empty() {
        return Ok(Seen::passed(format!("up, with {} services", known.len())));
    }
    let (mut working, mut findings) = (Vec::new(), Vec::new());
    for name in services {
        match known.get(name).map(|state| state.as_str().unwrap_or("in an unknown state")) {
            Some(state) if WORKING.contains(&state) => working.push(format!("{name} {state}")),
            Some(state) => findings.push(format!("{name} is {}", shown(state))),
            None => findings.push(format!("{name} is unknown here")),
        }
    }
    if findings.is_empty() {
        return Ok(Seen::passed(working.join(", ")));
    }
    Err(Seen::failed(format!("{}, expected running or available", findings.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_service_must_work() {
        let health =
            serde_json::json!({"s3": "running", "sqs": "available", "sns": "disabled", "ec2": "error"});
        let known = health.as_object().unwrap();
        for (services, said) in [
            ("", Ok("up, with 4 services")),
            ("s3", Ok("s3 running")),
            ("s3+sqs", Ok("s3 running, sqs available")),
            ("s3+sns", Err("sns is `disabled`, expected running or available")),
            ("ec2+x", Err("ec2 is `error`, x is unknown here, expected running or available")),
        ] {
            let named: Vec<_> =
                services.split('+').filter(|name| !name.is_empty()).map(str::to_owned).collect();
            let seen = judge(known, &named).map(|seen| seen.detail).map_err(|seen| seen.detail);
            assert_eq!(seen.as_deref().map_err(String::as_str), said, "{services}");
        }
    }
}
