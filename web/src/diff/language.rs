//! What languages look like, as far as colours need it.

/// One language, or a family of them that looks alike.
#[derive(Debug)]
pub(super) struct Language {
    /// What the names of its files end with, behind the last dot, or are.
    names: &'static str,
    pub(super) words: &'static str,
    /// What begins a comment up to the end of the line.
    pub(super) comments: &'static [&'static str],
    pub(super) block: Option<(&'static str, &'static str)>,
    pub(super) quotes: &'static str,
    /// Quotes of texts that go on over lines.
    pub(super) long: &'static [&'static str],
    /// A single quote is for one sign, not for a text.
    pub(super) has_chars: bool,
    /// Words behind `<` are tags.
    pub(super) tags: bool,
    /// A name at the beginning of a line, before a colon or an equals sign, is a key.
    pub(super) keys: bool,
}

const PLAIN: Language = Language {
    names: "",
    words: "",
    comments: &[],
    block: None,
    quotes: "\"'",
    long: &[],
    has_chars: false,
    tags: false,
    keys: false,
};
const C: Language = Language { comments: &["//"], block: Some(("/*", "*/")), has_chars: true, ..PLAIN };
const SCRIPT: Language = Language { comments: &["#"], ..PLAIN };

const LANGUAGES: &[Language] = &[
    Language {
        names: "rs",
        words: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut \
                pub ref return self Self static struct super trait true type unsafe use where while",
        ..C
    },
    Language {
        names: "c h cc cpp cxx hpp hh m mm cs java kt kts scala swift dart proto zig",
        words: "abstract actor as async await auto bool break case catch char class companion const constexpr continue data default \
                defer delegate delete do double else enum explicit export extends extension extern false final finally float for \
                foreach friend fun func goto guard if implements import in init inline int interface internal is let lock long \
                message namespace new null nullptr object operator optional override package private protected protocol public \
                readonly ref repeated required return sealed self short signed sizeof static string struct super switch \
                synchronized template this throw throws trait true try typedef typename union unsigned using val var virtual void \
                volatile when where while yield",
        ..C
    },
    Language {
        names: "go",
        words: "break case chan const continue default defer else fallthrough false for func go goto if import interface map nil \
                package range return select struct switch true type var",
        long: &["`"],
        ..C
    },
    Language {
        names: "js mjs cjs jsx ts tsx mts vue svelte",
        words: "abstract any as async await boolean break case catch class const continue debugger declare default delete do else \
                enum export extends false finally for from function get if implements import in instanceof interface keyof let \
                namespace new null number of private protected public readonly return set static string super switch this throw \
                true try type typeof undefined unknown var void while yield",
        long: &["`"],
        has_chars: false,
        ..C
    },
    Language {
        names: "php",
        words: "abstract and array as break case catch class clone const continue declare default do echo else elseif extends false \
                final finally fn for foreach function global if implements include instanceof interface match namespace new null or \
                private protected public readonly require return static switch throw trait true try use var while yield",
        comments: &["//", "#"],
        has_chars: false,
        ..C
    },
    Language {
        names: "py pyi",
        words: "False None True and as assert async await break class continue def del elif else except finally for from global if \
                import in is lambda match nonlocal not or pass raise return self try while with yield",
        long: &["\"\"\"", "'''"],
        ..SCRIPT
    },
    Language {
        names: "rb rake Gemfile Rakefile ex exs cr",
        words: "alias and begin break case class def defmodule do else elsif end ensure false fn for if in module next nil not or \
                private raise require rescue return self super then true unless until use when while yield",
        ..SCRIPT
    },
    Language {
        names: "sh bash zsh fish ksh pl pm tcl Dockerfile Containerfile nix",
        words: "ADD ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM LABEL RUN USER VOLUME WORKDIR alias break case cd continue do done echo \
                elif else end esac eval exec exit export fi for foreach function if in inherit let local my our read readonly \
                return set shift source sub test then trap unless until unset use while with",
        ..SCRIPT
    },
    Language {
        names: "mk Makefile GNUmakefile cmake",
        words: "define else elseif endef endfunction endif foreach function if ifdef ifeq ifndef ifneq include override set",
        ..SCRIPT
    },
    Language {
        names: "yaml yml toml ini cfg conf env properties tf hcl",
        words: "true false null yes no on off",
        comments: &["#", ";"],
        keys: true,
        long: &["\"\"\"", "'''"],
        ..PLAIN
    },
    Language {
        names: "json jsonc json5 jsonl lock",
        words: "true false null",
        comments: &["//"],
        keys: true,
        ..PLAIN
    },
    Language { names: "css scss less", block: Some(("/*", "*/")), keys: true, ..PLAIN },
    Language {
        names: "sql",
        words: "ADD ALTER AND AS ASC BEGIN BETWEEN BY CASE CHECK COMMIT CREATE DEFAULT DELETE DESC DISTINCT DROP ELSE END EXISTS \
                FALSE FOREIGN FROM GROUP HAVING IF IN INDEX INSERT INTO IS JOIN KEY LEFT LIKE LIMIT NOT NULL ON OR ORDER PRIMARY \
                REFERENCES RETURNING ROLLBACK SELECT SET TABLE THEN TRUE UNION UNIQUE UPDATE USING VALUES VIEW WHEN WHERE WITH \
                alter and as begin by case commit create default delete distinct drop else end exists from group having in index \
                insert into is join key left like limit not null on or order primary references returning select set table then \
                union unique update using values view when where with",
        comments: &["--"],
        block: Some(("/*", "*/")),
        ..PLAIN
    },
    Language {
        names: "lua hs elm adb ads",
        words: "and begin break case data do else elseif end exception false for function if import in infix instance is let local \
                module newtype nil not of or package procedure repeat return then true type until when where while with",
        comments: &["--"],
        ..PLAIN
    },
    Language {
        names: "html htm xml svg xhtml xsl",
        block: Some(("<!--", "-->")),
        quotes: "\"",
        tags: true,
        ..PLAIN
    },
];

/// By the name of a file; none of what is not known.
pub(super) fn language_of(path: &str) -> Option<&'static Language> {
    let name = path.rsplit('/').next()?;
    let end = name.rsplit_once('.').map_or(name, |(_, end)| end);
    LANGUAGES.iter().find(|language| language.names.split(' ').any(|known| known == end))
}
