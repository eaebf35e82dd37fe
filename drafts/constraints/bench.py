import os
os.chdir('/work/h/import')
def sub(p,a,b,n=1):
    s=open(p).read(); assert a in s,(p,a); s=s.replace(a,b,n); open(p,'w').write(s)
p='benches/src/bench/store.rs'
sub(p,'''    let place = &places[0];
    let repeats = extent.pick(3, 5, 9);
''','''    elsewhere(programs, size, table)?;

    let place = &places[0];
    let repeats = extent.pick(3, 5, 9);
''')
sub(p,'''/// The bytes that one task costs with its whole story''','''/// A file of another tool, and the same file once more, which changes nothing.
fn elsewhere(programs: &Programs, size: usize, table: &mut Table) -> Outcome<()> {
    let place = Place::empty(programs, 0)?;
    let import = place.import_beads(size)?;
    for what in ["import", "second import"] {
        let cost = interleaved(&mut [Contender::new(|_| import())], 1)?[0];
        let figure = format!("{:.2} s", cost.wall.as_secs_f64());
        let met = Verdict::of(cost.wall < Duration::from_secs(10));
        table.row(format!("{what} of {} issues of beads", grouped(size)), "< 10 s", figure, met);
    }
    Ok(())
}

/// The bytes that one task costs with its whole story''')
p='benches/src/bench/place.rs'
sub(p,'''    pub(crate) fn import(&self) -> Command {''','''    /// Writes so many issues of beads, half of them closed; gives the call that brings them in.
    pub(crate) fn import_beads(&self, size: usize) -> Outcome<impl Fn() -> Command + '_> {
        let path = self.path().join("issues.jsonl");
        let mut file = BufWriter::new(File::create(&path)?);
        for n in 1..=size {
            let ended = match n % 2 {
                0 => "\\"closed\\",\\"closed_at\\":\\"2026-01-02T00:00:00Z\\",\\"close_reason\\":\\"done\\"",
                _ => "\\"open\\"",
            };
            write!(file, "{{\\"id\\":\\"bd-{n}\\",\\"title\\":\\"issue number {n}\\",\\"description\\":\\"{}\\",", "words ".repeat(20))?;
            write!(file, "\\"status\\":{ended},\\"priority\\":{},\\"issue_type\\":\\"task\\",\\"labels\\":[\\"a\\"],", n % 5)?;
            write!(file, "\\"created_at\\":\\"2026-01-01T00:00:00Z\\",\\"updated_at\\":\\"2026-01-02T00:00:00Z\\"")?;
            if n > 1 {
                write!(file, ",\\"dependencies\\":[{{\\"depends_on_id\\":\\"bd-{}\\",\\"type\\":\\"blocks\\"}}]", n / 2)?;
            }
            writeln!(file, "}}")?;
        }
        file.flush()?;
        Ok(move || {
            let mut import = self.onus(&["import", "--format", "beads"]);
            import.arg(&path).args(["--as", &self.person]);
            import
        })
    }

    pub(crate) fn import(&self) -> Command {''')
