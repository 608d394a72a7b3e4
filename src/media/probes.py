"""Asks ffprobe what a page does not say of its formats."""
import json
import os
import re
import subprocess

from yt_dlp.utils import YoutubeDLError

import encryption
import streams

PROBED = ('-show_entries', 'format=format_name,duration:format_tags=major_brand,encryption,ASF_Protection_Type:stream_tags=enc_key_id:stream=codec_type,codec_name,width,height,start_time,duration,nb_frames:stream_disposition=attached_pic:stream_side_data=rotation')


def probe(downloader, chosen, order):
    """Returns the JSON of ffprobe about a format; ffprobe reads only the beginning of a file, and gets that of a stream from here."""
    command = [os.path.join(order['tools'], 'ffprobe'), '-v', 'error', '-of', 'json', *PROBED]
    try:
        if streams.is_fragmented(chosen):
            beginning, length = streams.sample(downloader, chosen)
            probed = ask([*command, '-i', 'pipe:0'], order, beginning)
            return {**probed, 'format': {'duration': length}}
        headers = ''.join(f'{name}: {value}\r\n' for name, value in streams.headers_of(chosen).items())
        probed = ask([*command, '-headers', headers, '-i', chosen['url']], order, b'')
    except (subprocess.TimeoutExpired, YoutubeDLError, ValueError):
        return None
    encryption.refuse_encrypted(downloader, chosen, probed)
    return probed


def mark_silent(downloader, info, order):
    """Marks the pictures of a list of HLS that names sound beside them, and no codecs, where the best one begins without sound: yt-dlp takes them
    for whole films, which they may be."""
    hls = [each for each in info['formats'] if each.get('manifest_url') and streams.is_hls(each)]
    for url in {each['manifest_url'] for each in hls if each.get('vcodec') == 'none'}:
        pictures = [each for each in hls if each['manifest_url'] == url and not each.get('vcodec') and not each.get('acodec')]
        found = (pictures and probe(downloader, {**info, **pictures[-1]}, order) or {}).get('streams') or []
        if {'video', 'audio'} & {each.get('codec_type') for each in found} == {'video'}:
            for each in pictures:
                each['acodec'] = 'none'


def ask(command, order, given):
    done = subprocess.run(command, input=given, capture_output=True, env={**os.environ, 'http_proxy': order['proxy']}, timeout=20)
    if done.returncode != 0 and re.search(b'Invalid data found|Format not on whitelist', done.stderr) or b'"major_brand": "avif"' in done.stdout:
        return {'is_invalid': True}  # pictures too: ffmpeg may read some formats of them, and one picture of AVIF
    return json.loads(done.stdout) if len(done.stdout) < 2**20 else {}
