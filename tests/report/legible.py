# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What cannot be read on a page: figures that are broken over two lines, and labels of pictures that are cut off. JavaScript that is evaluated in the page."""

from __future__ import annotations

#: Figures, with their units, whose signs are on more than one line; each text that has one is measured sign by sign.
BROKEN = """() => {
  const figure = /[0-9][0-9.,]*(?:[ \\u00a0](?:%|x|IOPS|[kMGTP]?B(?:\\/s)?|[KM]iB|[nµm]?s|min|h|d|°C)(?![a-zA-Z]))?/g;
  const found = [];
  const blocks = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    let block = walker.currentNode.parentNode;
    if (block.closest('script, style, pre, select, svg')) { continue; }
    while (getComputedStyle(block).display === 'inline') { block = block.parentNode; }
    blocks.add(block);
  }
  for (const block of blocks) {
    // The texts of one block, as they follow each other: a figure may be made of several.
    const nodes = [];
    const texts = document.createTreeWalker(block, NodeFilter.SHOW_TEXT, node => {
      let own = node.parentNode;
      while (getComputedStyle(own).display === 'inline') { own = own.parentNode; }
      return own === block ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_REJECT;
    });
    while (texts.nextNode()) { nodes.push(texts.currentNode); }
    const text = nodes.map(node => node.data).join('');
    for (const match of text.matchAll(figure)) {
      // Digits in names are none.
      const before = text.slice(0, match.index).match(/\\S*$/)[0], after = text.slice(match.index + match[0].length).match(/^\\S*/)[0];
      if (/[\\w./:=@-]$/.test(before) || /^[\\w/:=-]/.test(after)) { continue; }
      let at = 0;
      const tops = new Set();
      for (const node of nodes) {
        for (let place = Math.max(match.index - at, 0); place < Math.min(match.index + match[0].length - at, node.data.length); place += 1) {
          const range = document.createRange();
          range.setStart(node, place);
          range.setEnd(node, place + 1);
          const box = range.getBoundingClientRect();
          if (box.width && node.data[place].trim()) { tops.add(Math.round(box.bottom)); }
        }
        at += node.data.length;
      }
      if (tops.size > 1 && Math.max(...tops) - Math.min(...tops) > 4) { found.push(`${match[0]} in: ${text.trim().slice(0, 120)}`); }
    }
  }
  return found;
}"""

#: Labels that go past the edge of their picture, which cuts them off, and text of the page that is cut off by what it stands in.
CLIPPED = """() => {
  const found = [];
  document.querySelectorAll('.chart svg.main-svg, .flows svg').forEach(svg => {
    const frame = svg.getBoundingClientRect();
    svg.querySelectorAll('text').forEach(text => {
      const box = text.getBoundingClientRect();
      if (box.width && (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)) {
        found.push(`${text.textContent} in ${svg.closest('.chart')?.dataset.chart || svg.closest('.chart, figure').id || 'flows'}`);
      }
    });
  });
  document.querySelectorAll('main *, header *').forEach(one => {
    const style = getComputedStyle(one);
    if (!one.closest('svg, .scroll, pre, select, input') && one.clientWidth && one.scrollWidth > one.clientWidth + 1 && style.overflowX !== 'visible') {
      found.push(one.outerHTML.slice(0, 120));
    }
  });
  return found;
}"""
