use crate::tests::support::history::hold;
use onus_core::hash::{BASE32, crc32, encode_base32};
use onus_core::token::{Random, TokenKind, TokenText};
use proptest::prelude::*;

fn tokens() -> impl Strategy<Value = TokenText> {
    (any::<[u8; 5]>(), any::<[u8; 20]>(), 0..TokenKind::ALL.len())
        .prop_map(|(id, secret, kind)| TokenText::new(TokenKind::ALL[kind], &Random { id, secret }))
}

#[test]
fn a_token_reads_back() {
    hold(256, &tokens(), |token| {
        let back: TokenText = token.reveal().parse().unwrap();
        assert_eq!(back, token);
        assert_eq!(token.reveal().len(), 54);
        assert!(token.reveal().starts_with("onus_"));
        // Scanners for leaked secrets know it by this.
        let (head, tail) = token.reveal()[5..].split_once('_').unwrap();
        assert!("pas".contains(&head[..1]) && head.len() == 9 && tail.len() == 39);
        assert!(head[1..].bytes().chain(tail.bytes()).all(|b| BASE32.contains(&b)));
    });
}

/// A typing error never reaches the database.
#[test]
fn any_one_changed_character_is_refused() {
    hold(256, &(tokens(), 0..54_usize, any::<char>()), |(token, at, wrong)| {
        let mut changed: Vec<char> = token.reveal().chars().collect();
        if std::mem::replace(&mut changed[at], wrong) != wrong {
            let text: String = changed.into_iter().collect();
            assert!(text.parse::<TokenText>().is_err(), "{text}");
        }
    });
    // Characters that belong to a token, at each place of one: nothing is left to chance.
    let token = TokenText::new(TokenKind::Agent, &Random { id: [7; 5], secret: [9; 20] });
    for at in 0..54 {
        for wrong in BASE32.iter().chain(b"_ipsAO") {
            let mut changed = token.reveal().as_bytes().to_vec();
            if std::mem::replace(&mut changed[at], *wrong) != *wrong {
                let text = String::from_utf8(changed).unwrap();
                assert!(text.parse::<TokenText>().is_err(), "{text}");
            }
        }
    }
}

/// Nor does what nobody has typed wrong: a sum that fits makes no token of what is none.
#[test]
fn characters_of_no_token_are_refused_with_their_right_sum() {
    let token = TokenText::new(TokenKind::Agent, &Random { id: [7; 5], secret: [9; 20] });
    for wrong in ['i', 'o', 'A', '-', ' '] {
        let body = format!("{}{wrong}{}", &token.reveal()[..20], &token.reveal()[21..47]);
        let text = format!("{body}{}", encode_base32(&crc32(body.as_bytes()).to_be_bytes()));
        assert!(text.len() == 54 && text.parse::<TokenText>().is_err(), "{text}");
    }
}

#[test]
fn swapped_neighbours_and_other_lengths_are_refused() {
    hold(256, &(tokens(), 0..53_usize), |(token, at)| {
        let whole = token.reveal();
        let mut swapped = whole.as_bytes().to_vec();
        swapped.swap(at, at + 1);
        if swapped != whole.as_bytes() {
            assert!(String::from_utf8(swapped).unwrap().parse::<TokenText>().is_err());
        }
        for other in [&whole[1..], &whole[..at], &format!("{whole}0"), &format!(" {whole}"), ""] {
            assert!(other.parse::<TokenText>().is_err(), "{other}");
        }
    });
}

#[test]
fn neither_a_log_nor_an_error_shows_the_secret() {
    let token = TokenText::new(TokenKind::Person, &Random { id: [1; 5], secret: [0xab; 20] });
    let secret = &token.reveal()[15..];
    assert_eq!(format!("{token:?}"), format!("{}…", &token.reveal()[..15]), "its public half, and no more");
    assert!(!format!("{token:?}").contains(&secret[..6]));
    let nearly = format!("{}x", &token.reveal()[..53]);
    let error = nearly.parse::<TokenText>().unwrap_err();
    assert!(!error.contains(&secret[..6]), "{error}");
    assert_eq!(format!("{:?}", Random { id: [1; 5], secret: [0xab; 20] }), "Random(…)");
}
