//! A graph in layers, drawn where it is asked for: no script has to arrange it.

use crate::html::Html;
use askama::Template;
use onus_core::refusal::Refusal;

const WIDTH: i64 = 168;
const HEIGHT: i64 = 40;
const ACROSS: i64 = 56;
const DOWN: i64 = 14;

/// One box.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) label: String,
    /// A second, smaller line.
    pub(crate) about: String,
    pub(crate) href: String,
    /// What it looks like.
    pub(crate) class: String,
    /// Counted from the left.
    pub(crate) layer: usize,
}

#[derive(Debug)]
struct Placed<'a> {
    node: &'a Node,
    x: i64,
    y: i64,
}

#[derive(Debug, Template)]
#[template(path = "part/graph.html")]
struct Graph<'a> {
    title: &'a str,
    width: i64,
    height: i64,
    boxes: Vec<Placed<'a>>,
    /// As paths.
    lines: Vec<String>,
}

/// Draws boxes in columns, and lines from one to another by their numbers.
pub(crate) fn draw(title: &str, nodes: &[Node], edges: &[(usize, usize)]) -> Result<Html, Refusal> {
    let layers = nodes.iter().map(|node| node.layer + 1).max().unwrap_or_default();
    let mut heights = vec![0_i64; layers];
    let boxes: Vec<Placed<'_>> = nodes
        .iter()
        .map(|node| {
            let row = heights[node.layer];
            heights[node.layer] += 1;
            let column = i64::try_from(node.layer).unwrap_or_default();
            Placed { node, x: column * (WIDTH + ACROSS) + 1, y: row * (HEIGHT + DOWN) + 1 }
        })
        .collect();
    let lines = edges.iter().filter_map(|(from, to)| Some(line(boxes.get(*from)?, boxes.get(*to)?)));
    let graph = Graph {
        title,
        width: i64::try_from(layers).unwrap_or_default() * (WIDTH + ACROSS) - ACROSS + 2,
        height: heights.iter().max().copied().unwrap_or_default() * (HEIGHT + DOWN) - DOWN + 2,
        lines: lines.collect(),
        boxes,
    };
    crate::layout::rendered(&graph).map(Html)
}

/// From the right side of one box to the left side of the other.
fn line(from: &Placed<'_>, to: &Placed<'_>) -> String {
    let (x1, y1) = (from.x + WIDTH, from.y + HEIGHT / 2);
    let (x2, y2) = (to.x, to.y + HEIGHT / 2);
    let bend = (x2 - x1).abs().max(ACROSS) / 2;
    format!("M{x1} {y1}C{} {y1} {} {y2} {x2} {y2}", x1 + bend, x2 - bend)
}
