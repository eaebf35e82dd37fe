//! The table of codes that scripts rely on, and a page for each of them.

mod codes {
    use crate::tests::support::contract::{assert_file, pages, read};
    use onus_core::code::Code;
    use std::collections::BTreeSet;
    use std::fmt::Write as _;

    #[test]
    fn the_contract_lists_every_code() {
        let mut page = "\
# Error codes

Generated from the code; reviewed like code. A code may be added, never renamed. The same object
(`code`, `title`, `detail`, `hint`, `task`, `findings`, `request_id`) is the error of the CLI with `--json`, the HTTP
problem document and the MCP error. Each code has a page in `docs/errors/`.

| code | title | HTTP status | exit code |
|---|---|---|---|
"
        .to_owned();
        for code in Code::ALL {
            let (name, title) = (code.name(), code.title());
            let _ = writeln!(
                page,
                "| [`{name}`](../docs/errors/{name}.md) | {title} | {} | {} |",
                code.http_status(),
                code.exit_code()
            );
        }
        assert_file("contract/error-codes.md", &page);
    }

    #[test]
    fn every_code_has_its_page_and_every_page_its_code() {
        let codes: BTreeSet<String> = Code::ALL.iter().map(|code| code.name().to_owned()).collect();
        assert_eq!(pages("docs/errors"), codes);
    }

    /// A page says which code it is about, in the words of the table, and what to do next.
    #[test]
    fn every_page_is_whole() {
        for code in Code::ALL {
            let page = read(&format!("docs/errors/{code}.md"));
            let start = format!(
                "# {code}\n\n**{}.** Exit code {}, HTTP {}.\n",
                code.title(),
                code.exit_code(),
                code.http_status()
            );
            assert!(page.starts_with(&start), "docs/errors/{code}.md must start with:\n{start}");
            assert!(page.contains("\n## When it happens\n") && page.contains("\n## What to do\n"), "{code}");
            let is_example = |line: &str| line.starts_with("error: ") || line.starts_with("  - ");
            let shown = page.lines().any(|line| is_example(line) && line.ends_with(&format!(" [{code}]")));
            assert!(shown, "{code} has no example");
            assert!((8..=30).contains(&page.lines().count()), "{code} has {} lines", page.lines().count());
        }
    }

    #[test]
    fn the_index_names_every_page() {
        let index = read("docs/errors/README.md");
        for code in Code::ALL {
            assert!(index.contains(&format!("[`{code}`]({code}.md)")), "{code}");
        }
        assert_eq!(
            index.matches(".md)").count(),
            Code::ALL.len() + 1,
            "one link per code, and one to the contract"
        );
    }
}
