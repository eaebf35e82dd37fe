//! A workbook of one sheet. Durations are fractions of a day, which spreadsheets add up and show as hours.

use super::{TimesheetView, csv};
use onus_core::code::Code;
use onus_core::refusal::Refusal;
use rust_xlsxwriter::{DocProperties, ExcelDateTime, Format, Workbook, XlsxError};

const DAY: f64 = 86_400.0;

pub fn write(view: &TimesheetView) -> Result<Vec<u8>, Refusal> {
    workbook(view).map_err(|error| Refusal::new(Code::Internal, error.to_string()))
}

fn workbook(view: &TimesheetView) -> Result<Vec<u8>, XlsxError> {
    let mut book = Workbook::new();
    // The same question gives the same bytes: a workbook otherwise carries the moment at which it was made.
    let beginning = ExcelDateTime::from_ymd(2000, 1, 1)?;
    book.set_properties(&DocProperties::new().set_creation_datetime(&beginning));
    let bold = Format::new().set_bold();
    let hours = Format::new().set_num_format("[h]:mm:ss");
    let sheet = book.add_worksheet();
    sheet.set_name("timesheet")?;
    let sums = ["sessions", "time", "billable", "tokens", "cost", "corrected"];
    for (column, title) in (0_u16..).zip(view.by.iter().map(String::as_str).chain(sums)) {
        sheet.write_string_with_format(0, column, title, &bold)?;
    }
    let first = view.by.len() as u16;
    for (line, row) in (1_u32..).zip(&view.rows) {
        for (column, dimension) in (0_u16..).zip(&view.by) {
            sheet.write_string(line, column, csv::key(row, dimension))?;
        }
        sheet.write_number(line, first, row.sessions as f64)?;
        sheet.write_number_with_format(line, first + 1, row.seconds as f64 / DAY, &hours)?;
        sheet.write_number_with_format(line, first + 2, row.billable_seconds as f64 / DAY, &hours)?;
        sheet.write_number(line, first + 3, row.tokens as f64)?;
        if let Some(cost) = row.cost {
            sheet.write_number(line, first + 4, cost)?;
        }
        sheet.write_number(line, first + 5, row.corrected as f64)?;
    }
    sheet.set_freeze_panes(1, 0)?;
    sheet.autofit();
    book.save_to_buffer()
}
