//! What a model's tokens cost (mission E4). For records that count tokens and tell no cost; what the table does not name
//! costs nothing that anybody knows: it is left out, never guessed.

use crate::session::{Counts, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The source of a usage whose cost comes from the table says so.
const MARK: &str = "+prices";

/// By the exact name of the model.
pub type Prices = BTreeMap<String, Price>;

/// In millionths of the currency for a million tokens: 3000000 is three units a million.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Price {
    pub input: u32,
    pub output: u32,
    /// Without it a record that has read from a cache gets no cost.
    #[serde(default)]
    pub cache_read: Option<u32>,
    /// The same for what was written to a cache.
    #[serde(default)]
    pub cache_creation: Option<u32>,
}

impl Price {
    /// `None` where a kind of token was used that has no price.
    fn cost_micros(&self, counts: &Counts) -> Option<i64> {
        let parts = [
            (counts.input_tokens, Some(self.input)),
            (counts.output_tokens, Some(self.output)),
            (counts.cache_read_tokens, self.cache_read),
            (counts.cache_creation_tokens, self.cache_creation),
        ];
        let mut sum: i128 = 0;
        for (tokens, price) in parts.into_iter().filter(|(tokens, _)| *tokens != 0) {
            sum += i128::from(tokens) * i128::from(price?);
        }
        // Half a millionth is rounded up; a negative or an endless count is refused where the usage is decided.
        i64::try_from((sum + 500_000).div_euclid(1_000_000)).ok()
    }
}

/// The usage with its cost, where its own record tells none and the table does.
#[must_use]
pub fn priced(prices: &Prices, usage: Usage) -> Usage {
    let price = usage.model.as_ref().and_then(|model| prices.get(model));
    match (usage.counts.cost_micros, price.and_then(|price| price.cost_micros(&usage.counts))) {
        (None, Some(cost)) => Usage {
            source: format!("{}{MARK}", usage.source),
            counts: Counts { cost_micros: Some(cost), ..usage.counts },
            ..usage
        },
        _ => usage,
    }
}

/// Whether a usage's cost is this table's word, and not its record's.
pub(crate) fn is_priced(usage: &Usage) -> bool {
    usage.source.ends_with(MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(model: Option<&str>, cost_micros: Option<i64>) -> Usage {
        let counts = Counts {
            input_tokens: 1_000,
            output_tokens: 500,
            cache_read_tokens: 10_000,
            cache_creation_tokens: 0,
            cost_micros,
            turns: 0,
        };
        Usage { key: "k".into(), source: "s".into(), model: model.map(str::to_owned), counts }
    }

    fn prices(cache_read: Option<u32>) -> Prices {
        let price = Price { input: 3_000_000, output: 15_000_000, cache_read, cache_creation: None };
        Prices::from([("claude-x".to_owned(), price)])
    }

    #[test]
    fn tokens_of_a_known_model_have_a_cost() {
        let priced = priced(&prices(Some(300_000)), usage(Some("claude-x"), None));
        // 3,000 + 7,500 + 3,000 millionths.
        assert_eq!((priced.counts.cost_micros, priced.source.as_str()), (Some(13_500), "s+prices"));
        assert!(is_priced(&priced));
    }

    #[test]
    fn nothing_is_guessed_and_nothing_is_overruled() {
        let unknown = [usage(Some("claude-x-2"), None), usage(None, None)];
        for own in unknown.into_iter().chain([usage(Some("claude-x"), Some(1))]) {
            assert_eq!(priced(&prices(Some(300_000)), own.clone()), own);
        }
        let without = usage(Some("claude-x"), None);
        assert_eq!(priced(&prices(None), without.clone()), without, "reading from the cache has no price");
    }

    #[test]
    fn half_a_millionth_is_rounded_up() {
        let tiny = Price { input: 1, output: 1, cache_read: None, cache_creation: None };
        for (tokens, cost) in [(1, 0), (499_999, 0), (500_000, 1), (1_000_000, 1)] {
            assert_eq!(tiny.cost_micros(&Counts { input_tokens: tokens, ..Counts::default() }), Some(cost));
        }
    }
}
