import os
os.chdir('/work/h/import/crates')
def sub(p,a,b,n=1):
    s=open(p).read(); assert a in s,(p,a); s=s.replace(a,b,n); open(p,'w').write(s)
p='onus-app/src/rerun.rs'
sub(p,'let setting = self.setting(&original)?;','let setting = self.setting(call, &original)?;')
sub(p,'    fn setting(&mut self, task: &Task) -> Result<Setting, Refusal> {','    fn setting(&mut self, call: &Rerun<\'_>, task: &Task) -> Result<Setting, Refusal> {')
sub(p,'''        findings.extend(workstation_finding(&last.workstation, row.as_ref()));
''','''        let retired = row.as_ref().map(|row| &row.workstation).filter(|one| comes_back(one)).cloned();
        if retired.is_none() {
            findings.extend(workstation_finding(&last.workstation, row.as_ref()));
        }
''')
sub(p,'''        let directory = row.and_then(|row| row.workstation.path).map(PathBuf::from);
''','''        let directory = match (&retired, &last.base) {
            (Some(retired), Some(base)) => Some(self.made_again(call, retired, base)?),
            _ => row.and_then(|row| row.workstation.path).map(PathBuf::from),
        };
''')
sub(p,'''    fn commit_finding(''','''    /// A place that was made for one task is made again, as it was registered.
    fn made_again(
        &mut self,
        call: &Rerun<'_>,
        retired: &Workstation,
        base: &CommitId,
    ) -> Result<PathBuf, Refusal> {
        self.may_add_workstation(call.actor, &retired.name)?;
        let repo =
            self.place.repo.clone().ok_or_else(|| unexpected("a working tree without a repository"))?;
        let beside = || {
            let root = repo.root.as_deref().unwrap_or(&repo.common_dir);
            let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            root.parent().unwrap_or(root).join(format!("{name}-{}", retired.name))
        };
        let path = retired.path.as_deref().map_or_else(beside, PathBuf::from);
        let branch = retired.branch.as_ref().map_or_else(|| retired.name.to_string(), ToString::to_string);
        worktree::create(&repo, &path, &branch, base.as_str())?;
        let wanted = WorkstationAdded {
            name: retired.name.clone(),
            kind: retired.kind,
            path: Some(path.display().to_string()),
            lifecycle: retired.lifecycle,
            branch: retired.branch.clone(),
            probes: retired.probes.clone(),
            role: retired.role.clone(),
            lane: retired.lane,
        };
        self.add_workstation(call.actor, &wanted)?;
        Ok(path)
    }

    fn commit_finding(''')
sub(p,'''fn workstation_finding(''','''/// Whether a retired workstation is one that was made for its task alone: whatever else is retired, a person has retired.
fn comes_back(workstation: &Workstation) -> bool {
    workstation.state == WorkstationState::Retired
        && workstation.lifecycle == Lifecycle::SingleTask
        && workstation.kind == WorkstationKind::Worktree
}

fn workstation_finding(''')
sub(p,'use onus_core::workstation::{Workstation, WorkstationState};','use onus_core::workstation::{Lifecycle, Workstation, WorkstationKind, WorkstationState};')
sub(p,'use onus_core::command::{Command, Envelope, Warrant};','use onus_core::command::{Command, Envelope, Warrant};\nuse onus_core::event::WorkstationAdded;')
