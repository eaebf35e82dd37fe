//! Redmine's issues: as its REST interface gives them, or a CSV export.

use super::item::{Item, Remark, Stand, name_of, take_name, take_names, take_text, urgency};
use super::{Reading, SourceFile, kind_of, objects, spreadsheet};
use onus_core::task::StateName;
use serde_json::{Map, Value as Json};

pub(super) fn read(files: &[SourceFile], reading: &mut Reading) {
    let mut waits: Vec<(String, String)> = Vec::new();
    for file in files {
        let is_json = file.text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[']);
        let entries = if is_json {
            objects(file, &["issues"], reading)
        } else {
            let rows = spreadsheet::rows(file, reading);
            if let Some(detail) = strange_columns(&rows) {
                reading.wrong(1, &file.name, detail);
                continue;
            }
            rows.into_iter().map(|(line, row)| (line, of_row(row))).collect()
        };
        for (line, fields) in entries {
            // A single issue stands below its name.
            let fields = match fields.get("issue") {
                Some(Json::Object(issue)) => {
                    let issue = issue.clone();
                    let beside = fields.into_iter().filter(|(name, _)| name != "issue");
                    super::about_the_list(beside.collect(), 1, reading);
                    issue
                }
                _ => fields,
            };
            let read = issue(fields, &mut waits, reading);
            reading.take(files, file, line, read);
        }
    }
    reading.wait(waits);
}

/// The columns of a CSV export, in the languages that Redmine is used in most, under the names of the REST interface.
const COLUMNS: &[(&str, &[&str])] = &[
    ("id", &["#"]),
    ("subject", &["Subject", "Thema", "Sujet", "Asunto", "Título", "Oggetto", "題名", "Тема"]),
    (
        "description",
        &["Description", "Beschreibung", "Descripción", "Descrição", "Descrizione", "説明", "Описание"],
    ),
    (
        "project",
        &["Project", "Projekt", "Projet", "Proyecto", "Projeto", "Progetto", "プロジェクト", "Проект"],
    ),
    ("tracker", &["Tracker", "Tipo", "トラッカー", "Трекер"]),
    ("status", &["Status", "Statut", "Estado", "Situação", "Stato", "ステータス", "Статус"]),
    (
        "priority",
        &["Priority", "Priorität", "Priorité", "Prioridad", "Prioridade", "Priorità", "優先度", "Приоритет"],
    ),
    (
        "fixed_version",
        &[
            "Target version",
            "Zielversion",
            "Version cible",
            "Versión prevista",
            "Versão",
            "Versione prevista",
            "対象バージョン",
            "Версия",
        ],
    ),
    (
        "parent",
        &[
            "Parent task",
            "Übergeordnetes Ticket",
            "Übergeordnete Aufgabe",
            "Tâche parente",
            "Tarea padre",
            "Tarefa mãe",
            "Attività principale",
            "親チケット",
            "Родительская задача",
        ],
    ),
    ("created_on", &["Created", "Angelegt", "Créé", "Creado", "Criado em", "Creato", "作成日", "Создано"]),
    (
        "updated_on",
        &[
            "Updated",
            "Aktualisiert",
            "Mis-à-jour",
            "Actualizado",
            "Alterado em",
            "Aggiornato",
            "更新日",
            "Обновлено",
        ],
    ),
    (
        "closed_on",
        &[
            "Closed",
            "Geschlossen am",
            "Geschlossen",
            "Fermé",
            "Cerrada",
            "Concluído",
            "Chiuso",
            "終了日",
            "Закрыта",
        ],
    ),
    (
        "assigned_to",
        &[
            "Assignee",
            "Zugewiesen an",
            "Assigné à",
            "Asignado a",
            "Atribuído para",
            "Assegnato a",
            "担当者",
            "Назначена",
        ],
    ),
    ("author", &["Author", "Autor", "Auteur", "Autore", "作成者", "Автор"]),
    ("category", &["Category", "Kategorie", "Catégorie", "Categoría", "Categoria", "カテゴリ", "Категория"]),
    (
        "start_date",
        &["Start date", "Beginn", "Début", "Fecha de inicio", "Início", "Inizio", "開始日", "Дата начала"],
    ),
    (
        "due_date",
        &[
            "Due date",
            "Abgabedatum",
            "Echéance",
            "Fecha fin",
            "Data prevista",
            "Scadenza",
            "期日",
            "Срок завершения",
        ],
    ),
    (
        "done_ratio",
        &[
            "% Done",
            "% erledigt",
            "% réalisé",
            "% Realizado",
            "% Terminado",
            "% Completato",
            "進捗率",
            "Готовность",
        ],
    ),
    (
        "estimated_hours",
        &[
            "Estimated time",
            "Geschätzter Aufwand",
            "Temps estimé",
            "Tiempo estimado",
            "Tempo estimado",
            "Tempo stimato",
            "予定工数",
            "Оценка временных затрат",
        ],
    ),
    (
        "spent_hours",
        &[
            "Spent time",
            "Aufgewendete Zeit",
            "Temps passé",
            "Tiempo dedicado",
            "Tempo gasto",
            "Tempo impiegato",
            "作業時間",
            "Трудозатраты",
        ],
    ),
    (
        "Related issues",
        &[
            "Zugehörige Tickets",
            "Demandes liées",
            "Peticiones relacionadas",
            "Tarefas relacionadas",
            "Segnalazioni correlate",
            "関連するチケット",
            "Связанные задачи",
        ],
    ),
    (
        "Last notes",
        &["Letzte Kommentare", "Dernières notes", "Últimas notas", "最新のコメント", "Последние примечания"],
    ),
    (
        "Last updated by",
        &[
            "Zuletzt geändert von",
            "Dernière mise à jour par",
            "Última actualización de",
            "Última atualização por",
            "Ultimo aggiornamento di",
            "最終更新者",
            "Последний изменивший",
        ],
    ),
];

fn column(name: &str) -> Option<&'static str> {
    COLUMNS.iter().find(|(_, names)| names.contains(&name)).map(|(field, _)| *field)
}

/// The columns under the names of the REST interface; the others keep theirs. That nothing stands under the date of its
/// closing says that it is open.
fn of_row(row: Map<String, Json>) -> Map<String, Json> {
    let named = |name: String| column(&name).map_or(name, str::to_owned);
    let filled =
        row.into_iter().map(|(name, value)| (named(name), value)).filter_map(|(name, value)| {
            match (value.as_str(), name.as_str()) {
                (Some(""), "closed_on") => Some((name, Json::Null)),
                (Some(""), _) => None,
                _ => Some((name, value)),
            }
        });
    filled.collect()
}

/// A table whose language is not known, told once instead of once per row.
fn strange_columns(rows: &[(usize, Map<String, Json>)]) -> Option<String> {
    let (_, row) = rows.first()?;
    let has = |field: &str| row.keys().any(|name| column(name) == Some(field));
    if has("subject") && has("id") {
        return None;
    }
    let names: Vec<&str> = row.keys().map(String::as_str).take(8).collect();
    Some(format!(
        "no column is known as the number and the subject ({}): export with your language in Redmine set to English, or take \
         issues.json",
        onus_core::text::shortened(&names.join(", "), 200)
    ))
}

/// `{"id": 1, "name": "Bug"}`, or the name alone.
fn word(fields: &Map<String, Json>, name: &str) -> Option<String> {
    let value = fields.get(name)?;
    name_of(value.get("name").unwrap_or(value))
}

fn issue(
    mut fields: Map<String, Json>,
    waits: &mut Vec<(String, String)>,
    reading: &mut Reading,
) -> Result<Item, String> {
    let key = take_name(&mut fields, "id").ok_or("the issue has no id")?;
    let mut item =
        Item { key, title: take_text(&mut fields, "subject").unwrap_or_default(), ..Item::default() };
    item.body = take_text(&mut fields, "description");
    item.kind = word(&fields, "tracker").map(|word| kind_of(&word.to_lowercase()));
    item.sprint = word(&fields, "fixed_version");
    // Redmine has none; the issues of forges come in its shape.
    item.tags = take_names(&mut fields, "labels").unwrap_or_default();
    item.parent = fields.get("parent").and_then(|one| name_of(one.get("id").unwrap_or(one)));
    item.parent = item.parent.map(|parent| parent.trim_start_matches('#').to_owned());
    item.priority = word(&fields, "priority").and_then(|word| urgency(&word));
    if let Some(at) = take_text(&mut fields, "created_on") {
        item.created_at = item.moment("created_on", &at);
    }
    relations(&item.key, &fields, waits);
    item.remarks = remarks(&fields);
    item.stand = stand(&mut item, &mut fields, reading)?;
    let mapped = [
        "tracker",
        "fixed_version",
        "parent",
        "priority",
        "status",
        "relations",
        "journals",
        "Related issues",
    ];
    for name in mapped {
        if let Some(value) = fields.remove(name) {
            item.keep(name, if name == "journals" { without_notes(value) } else { value });
        }
    }
    item.keep_rest(fields, &mut reading.unmapped);
    Ok(item)
}

/// Who waits for whom, by either one's relations.
fn relations(own: &str, fields: &Map<String, Json>, waits: &mut Vec<(String, String)>) {
    for relation in fields.get("relations").and_then(Json::as_array).into_iter().flatten() {
        let id = |name: &str| relation.get(name).and_then(name_of);
        let (Some(from), Some(to)) = (id("issue_id"), id("issue_to_id")) else { continue };
        match relation.get("relation_type").and_then(Json::as_str) {
            Some("blocks" | "precedes") => waits.push((to, from)),
            Some("blocked" | "follows") => waits.push((from, to)),
            _ => {}
        }
    }
    let told = fields.get("Related issues").and_then(Json::as_str).unwrap_or_default();
    for relation in told.split([',', '\n']) {
        let Some((words, number)) = relation.trim().rsplit_once('#') else { continue };
        match words.trim().to_lowercase().as_str() {
            "blocks" | "precedes" | "blockiert" | "vorgänger von" | "bloque" | "précède" | "bloquea a"
            | "anterior a" | "bloqueia" | "blocca" | "precede" => {
                waits.push((number.to_owned(), own.to_owned()));
            }
            "blocked by" | "follows" | "blockiert durch" | "nachfolger von" | "bloqué par" | "suit"
            | "bloqueado por" | "posterior a" | "bloccata da" | "segue" => {
                waits.push((own.to_owned(), number.to_owned()));
            }
            _ => {}
        }
    }
}

fn remarks(fields: &Map<String, Json>) -> Vec<Remark> {
    let journals = fields.get("journals").and_then(Json::as_array).into_iter().flatten();
    let mut found: Vec<Remark> = journals
        .filter_map(|journal| {
            let text = journal.get("notes")?.as_str().filter(|text| !text.trim().is_empty())?;
            Some(Remark {
                by: journal.get("user").and_then(|user| name_of(user.get("name")?)).unwrap_or_default(),
                at: journal.get("created_on").and_then(name_of),
                key: journal.get("id").and_then(name_of),
                text: text.to_owned(),
            })
        })
        .collect();
    if let Some(text) = fields.get("Last notes").and_then(Json::as_str) {
        let by = fields.get("Last updated by").and_then(Json::as_str).unwrap_or_default().to_owned();
        let at = fields.get("updated_on").and_then(Json::as_str).map(str::to_owned);
        found.push(Remark { by, at, key: Some("last-notes".to_owned()), text: text.to_owned() });
    }
    found
}

/// The words of a journal are a note; what it changed stays.
fn without_notes(journals: Json) -> Json {
    let Json::Array(journals) = journals else {
        return journals;
    };
    let stripped = journals.into_iter().map(|mut journal| {
        if let Some(fields) = journal.as_object_mut()
            && fields.get("notes").is_some_and(|words| words.is_string() || words.is_null())
        {
            fields.remove("notes");
        }
        journal
    });
    Json::Array(stripped.collect())
}

fn stand(item: &mut Item, fields: &mut Map<String, Json>, reading: &Reading) -> Result<Stand, String> {
    let status = match fields.get("status") {
        None | Some(Json::Null) => "New".to_owned(),
        Some(_) => word(fields, "status").ok_or("its status is no word")?,
    };
    let says_closed = fields.get("status").and_then(|status| status.get("is_closed")?.as_bool());
    let tells_closing = fields.contains_key("closed_on");
    let closed_on = take_text(fields, "closed_on");
    if fields.get("closed_on").is_some_and(Json::is_null) {
        fields.remove("closed_on");
    }
    let at = closed_on.as_deref().and_then(|text| item.moment("closed_on", text));
    let lower = status.to_lowercase();
    let is_dropped = DROPPED.contains(&lower.as_str());
    let is_closed = says_closed.unwrap_or(closed_on.is_some()) || is_dropped || lower == "closed";
    if is_closed {
        let state = if is_dropped { StateName::Dropped } else { StateName::Complete };
        return Ok(Stand::Ended { state, at, resolution: None });
    }
    if lower == "on hold" {
        return Ok(Stand::Parked(format!("{status} in Redmine")));
    }
    if says_closed.is_some() || tells_closing || OPEN.contains(&lower.as_str()) {
        // A word of the caller's goes before a date that is missing.
        return Ok(reading.told(&status, "Redmine", None).unwrap_or(Stand::Open));
    }
    reading.told(&status, "Redmine", None).map_err(|detail| {
        format!("whether it is closed cannot be told: neither is_closed nor a closing date says so; {detail}")
    })
}

/// Statuses of which no closing date need tell.
const OPEN: &[&str] = &["new", "assigned", "in progress", "resolved", "feedback", "open"];
const DROPPED: &[&str] = &[
    "rejected",
    "cancelled",
    "canceled",
    "duplicate",
    "abgewiesen",
    "rejeté",
    "rechazada",
    "rejeitada",
    "rifiutato",
    "却下",
    "отклонена",
];
