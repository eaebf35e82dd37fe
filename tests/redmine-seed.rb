# What the tests' Redmine begins with: REST, custom fields, and an account that is no administrator.
ActionMailer::Base.perform_deliveries = false
Setting.rest_api_enabled = '1'
Setting.default_language = 'en'
Setting.host_name = 'localhost'
admin = User.find_by_login('admin')
admin.must_change_passwd = false
admin.password = admin.password_confirmation = 'onus-admin-pw'
admin.save!
fields = ['Workstation', 'Agent Name', 'Task Type', 'Onus Task'].map do |name|
  field = IssueCustomField.new(name: name, field_format: 'string', is_for_all: true, is_filter: true, searchable: true,
                               visible: true, editable: true)
  field.trackers = Tracker.all
  field.save!
  [name, field.id]
end
bot = User.new(firstname: 'Onus', lastname: 'Bot', mail: 'onus-bot@example.invalid', language: 'en')
bot.login = 'onus-bot'
bot.password = bot.password_confirmation = 'onus-bot-pw'
bot.save!
ada = User.new(firstname: 'Ada', lastname: 'Lovelace', mail: 'ada@example.invalid', language: 'en')
ada.login = 'ada'
ada.password = ada.password_confirmation = 'onus-ada-pw'
ada.save!
role = Role.find_by_name('Manager')
role.add_permission!(:log_time_for_other_users)
puts JSON.generate({ admin_key: admin.api_key, bot_key: bot.api_key, bot_id: bot.id, ada_id: ada.id, role_id: role.id,
                     fields: fields.to_h })
