//! The settings of a program that runs for long follow `onus.yaml`: it is held to what a command line in the same directory is.

use crate::Onus;
use onus_core::refusal::Refusal;
use onus_host::settings::SettingsWatch;

/// The file as one connection has read it.
#[derive(Debug)]
pub struct FollowedSettings(SettingsWatch);

impl FollowedSettings {
    pub fn of(onus: &Onus) -> FollowedSettings {
        FollowedSettings(SettingsWatch::new(onus.place.settings_file()))
    }

    /// A file that cannot be read changes nothing, and is told of once.
    pub fn follow(&mut self, onus: &mut Onus) -> Result<(), Refusal> {
        if let Some(settings) = self.0.changed() {
            onus.settings = settings?;
        }
        Ok(())
    }
}
