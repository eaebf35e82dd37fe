//! The presets that come with the program: a file for each client (`presets/*.yaml`), and the team's own beside them.

use crate::yaml::{self, Words};
use onus_core::agents::{Preset, Presets};
use onus_core::code::Code;
use onus_core::id::PresetName;
use onus_core::refusal::Refusal;
use std::collections::BTreeMap;

const FILES: &[(&str, &str)] = &[
    ("claude", include_str!("../presets/claude.yaml")),
    ("codex", include_str!("../presets/codex.yaml")),
    ("gemini", include_str!("../presets/gemini.yaml")),
    ("opencode", include_str!("../presets/opencode.yaml")),
    ("shell", include_str!("../presets/shell.yaml")),
];

const WORDS: Words = Words {
    code: Code::InvalidInput,
    entry: "key",
    entries: "keys",
    remedy: "see docs/reference/presets.md",
};

/// Every preset; one of the team's takes the place of ours of the same name.
pub fn with(own: &BTreeMap<PresetName, Preset>) -> Result<Presets, Refusal> {
    let ours = FILES.iter().map(|(name, text)| {
        let preset: Preset = yaml::parse(text.as_bytes(), name, &WORDS)?;
        Ok((name.parse::<PresetName>().map_err(Refusal::invalid)?, preset))
    });
    let ours = ours.collect::<Result<Vec<_>, Refusal>>()?;
    let own = own.iter().map(|(name, preset)| (name.clone(), preset.clone()));
    Ok(Presets::new(ours.into_iter().chain(own)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use onus_core::agents::{AgentSettings, PROMPT, agents, mistakes};

    fn named(name: &str) -> PresetName {
        name.parse().unwrap()
    }

    #[test]
    fn every_file_is_a_preset_without_mistakes() {
        let all = with(&BTreeMap::new()).unwrap();
        for (name, _) in FILES {
            let preset = all.find(&named(name)).unwrap().clone();
            assert_eq!(mistakes(&BTreeMap::from([(named(name), preset)])), [], "{name}");
        }
        assert!(all.find(&named("nobody")).unwrap_err().detail.contains("claude, codex"));
    }

    #[test]
    fn a_client_goes_on_with_its_own_session() {
        let all = with(&BTreeMap::new()).unwrap();
        for (name, end) in [
            ("claude", "--resume s"),
            ("codex", "danger-full-access resume s {prompt}"),
            ("gemini", "--skip-trust --resume s"),
            ("opencode", "json --session s {prompt}"),
        ] {
            let words = all.find(&named(name)).unwrap().resumed("s").unwrap().join(" ");
            assert!(words.ends_with(end) && words.matches(PROMPT).count() == 1, "{words}");
        }
        assert_eq!(all.find(&named("shell")).unwrap().resumed("s"), None);
    }

    #[test]
    fn a_preset_of_the_team_takes_the_place_of_ours() {
        let text = "{call: [mine, '{prompt}'], resume: ['{call}', -c, '{session}'], transcript: claude, writes: [.mine]}";
        let mine: Preset = yaml::parse(text.as_bytes(), "mine", &WORDS).unwrap();
        let all = with(&BTreeMap::from([(named("claude"), mine.clone()), (named("aider"), mine)])).unwrap();
        for name in ["claude", "aider"] {
            let kind: AgentSettings =
                serde_json::from_value(serde_json::json!({ "worker": "@a", "preset": name })).unwrap();
            let agent = agents(&[kind], &all).unwrap().remove(0);
            assert_eq!((agent.command.join(" "), agent.tier), ("mine {prompt}".into(), Some(name.into())));
        }
        assert_eq!(all.find(&named("aider")).unwrap().resumed("s").unwrap().join(" "), "mine {prompt} -c s");
        assert!(all.writes().any(|path| path == ".mine"));
    }
}
