// Written by clients/generate; do not edit.
export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        Error: {
            /** @description What is wrong, in a sentence; the header x-error-code has the code */
            error: string;
        };
        Accepted: {
            /** Format: uuid */
            job_id: string;
        };
        AcceptedBatch: {
            /** Format: uuid */
            batch_id: string;
        };
        WebhookBatch: {
            /** Format: uuid */
            id: string;
            /**
             * @description Running until every job has ended
             * @enum {string}
             */
            status: "Running" | "Completed" | "Cancelled";
            counts: {
                queued: number;
                running: number;
                completed: number;
                /** @description Cancelled ones included */
                failed: number;
            };
            credits: {
                held: number;
                charged: number;
            };
        };
        JobEvent: {
            id: string;
            /** @enum {string} */
            event: "progress" | "end";
            /** @description The Job, as JSON */
            data: string;
        };
        WebhookCompleted: {
            /**
             * Format: uuid
             * @description Id of the job
             */
            id: string;
            /** @constant */
            status: "CompletedJob";
            result: {
                metadata: components["schemas"]["Metadata"] | null;
                /** @description Signed link to the file; null when it is gone already */
                response: string | null;
            };
        };
        WebhookFailed: {
            /**
             * Format: uuid
             * @description Id of the job
             */
            id: string;
            /** @constant */
            status: "Error";
            error: string;
        };
        WebhookTest: {
            /**
             * Format: uuid
             * @description Id of the test
             */
            id: string;
            /** @constant */
            type: "test";
            /** Format: date-time */
            created_at: string;
        };
        Metadata: {
            id: string | null;
            ext: string | null;
            title: string | null;
            width: number | null;
            height: number | null;
            channel: string | null;
            channel_url: string | null;
            is_live: boolean | null;
            was_live: boolean | null;
            live_status: ("not_live" | "is_live" | "is_upcoming" | "was_live" | "post_live") | null;
            duration: number | null;
            extractor: string | null;
            thumbnail: string | null;
            like_count: number | null;
            view_count: number | null;
            description: string | null;
            upload_date: number | null;
            webpage_url: string | null;
            original_url: string | null;
        };
        Job: {
            /** Format: uuid */
            id: string;
            /**
             * @description Every other than QueuedJob and Running is the end
             * @enum {string}
             */
            status: "QueuedJob" | "Running" | "CompletedJob" | "Error" | "NotFound" | "BadRequest";
            /** @description null until the end */
            success: boolean | null;
            /** @description Path of the endpoint that started the job */
            endpoint: string;
            /** Format: date-time */
            created_at: string;
            started_at: string | null;
            completed_at: string | null;
            /** @description From start to end; null until the end */
            duration_ms: number | null;
            progress: number;
            /** @description The parameters as understood, with defaults */
            args: {
                [key: string]: unknown;
            };
            /** @description null unless the job completed */
            result: components["schemas"]["Result"] | null;
            /** @description Why the job did not complete, in a sentence */
            error?: string | null;
            /** @description A code of docs/errors.md, which may gain more */
            error_code?: string | null;
            /** @description true when the same request may succeed later */
            retryable?: boolean | null;
            /** @description While the job waits: its position among the jobs of the account */
            queue?: {
                position: number;
                eta_seconds: number | null;
                reason: string;
            };
            /** @description While the job runs: inspect, fetch, record (a live stream), convert, prove or upload */
            stage?: string | null;
            /** @description Bytes a second of the stage */
            speed_bytes?: number | null;
            /** @description Seconds to the end of the stage, estimated */
            eta_seconds?: number | null;
        };
        Result: {
            metadata: components["schemas"]["Metadata"] | null;
            /** @description Signed link to the file; null without a file */
            response: string | null;
            /** @description When the file is removed */
            expires_at?: string | null;
            /** Format: int64 */
            bytes?: number;
            /** @description Hexadecimal */
            sha256?: string;
            content_type?: string;
        };
        Batch: {
            /** Format: uuid */
            id: string;
            /**
             * @description Running until every job has ended
             * @enum {string}
             */
            status: "Running" | "Completed" | "Cancelled";
            counts: {
                queued: number;
                running: number;
                completed: number;
                /** @description Cancelled ones included */
                failed: number;
            };
            credits: {
                held: number;
                charged: number;
            };
            jobs: {
                /** @description null when the record of the job has expired */
                query: string | null;
                /** Format: uuid */
                job_id: string;
                status: ("QueuedJob" | "Running" | "CompletedJob" | "Error" | "NotFound" | "BadRequest") | null;
                /** @description Why the job did not complete, in a sentence */
                error: string | null;
                error_code: string | null;
            }[];
            next_cursor: string | null;
        };
        JobList: {
            jobs: components["schemas"]["Job"][];
            next_cursor: string | null;
        };
        Pack: {
            id: string;
            title: string;
            /** Format: date-time */
            purchased_at: string;
            total: number;
            used: number;
            remaining: number;
            percent_used: number;
            exhausted: boolean;
        };
        Usage: {
            /** @description What is left of subscription, packs and credits */
            remaining: number;
            total_used: number;
            /** @description Credits that open jobs and calls will cost if they succeed */
            held: number;
            renewal_date: string | null;
            period: {
                /** Format: date-time */
                start: string;
                /** Format: date-time */
                end: string;
            };
            subscription: {
                total: number;
                used: number;
                remaining: number;
                percent_used: number;
            };
            packs: {
                count: number;
                exhausted_count: number;
                all_exhausted: boolean;
                total: number;
                used: number;
                remaining: number;
                percent_used: number;
                current_index: number;
                current: components["schemas"]["Pack"] | null;
                items: components["schemas"]["Pack"][];
            } | null;
            credits: {
                given: number;
                consumed: number;
                remaining: number;
                percent_used: number;
            };
            rate_limit: {
                per_minute: number | null;
                per_second: number | null;
            };
            account: {
                name: string;
                slug: string;
            };
            api_key: {
                alias: string;
                active: boolean;
                category: string;
                expires: string | null;
                quotas: {
                    total: number | null;
                    daily: number | null;
                    weekly: number | null;
                    monthly: number | null;
                };
            };
        };
        UsageHistory: {
            days: {
                /**
                 * Format: date
                 * @description UTC
                 */
                day: string;
                /** @description Alias of the key */
                key: string;
                /** @description Requests with the key, as far as its request log holds them */
                calls: number;
                /** @description Credits charged */
                credits: number;
                /** @description Synchronous answers and jobs that completed */
                completed: number;
                /** @description Jobs that ended otherwise */
                failed: number;
            }[];
        };
        ReducedUsage: {
            plan: string;
            remaining: string;
        };
        Stats: {
            engine: string;
            path: string | null;
            /** @enum {string} */
            health: "operational" | "degraded" | "down";
            success_rate: number;
            avg_response_time_ms: number;
            /** @constant */
            window: "1h";
        };
        VideoRequest: {
            /**
             * Format: uri
             * @description URL of the video. Its fragment counts where the site needs it.
             * @example https://example.com/film.mp4
             */
            query: string;
            /**
             * @description What is delivered.
             * @default audio_video
             * @enum {string}
             */
            download_type?: "audio_video" | "audio" | "video";
            /** @description Seconds; what is longer is cut to this length. */
            max_duration?: number;
            /** @description Second of the source at which the file begins; instead of max_duration. */
            start?: number;
            /** @description Second of the source at which the file ends; instead of max_duration. */
            end?: number;
            /**
             * @description The largest picture wanted.
             * @default best
             * @enum {string}
             */
            video_quality?: "best" | "1080p" | "720p" | "480p" | "360p";
            /**
             * @description The container preferred; the file may differ.
             * @default mp4
             * @enum {string}
             */
            video_format?: "mp4" | "webm" | "mkv";
            /**
             * Format: uri
             * @description URL to which the end of the job is posted.
             */
            webhook_url?: string;
            /** @description Value of the Authorization header of the webhook. */
            webhook_authorization?: string;
            /**
             * @description Answers an error with status 200 and the same body.
             * @default false
             */
            soft_fail?: boolean;
            /**
             * @description Answers with a job_id at once. Downloads always do; endpoints that cost nothing ignore it.
             * @default false
             */
            is_async?: boolean;
            /** @description What to keep of the answer: names with commas between them, dots leading into objects and arrays. */
            fields?: string;
        };
        AudioRequest: {
            /**
             * Format: uri
             * @description URL of the sound, or of a video that has it. Its fragment counts where the site needs it.
             * @example https://example.com/film.mp4
             */
            query: string;
            /**
             * @description What is delivered.
             * @default audio
             * @enum {string}
             */
            download_type?: "audio";
            /** @description Seconds; what is longer is cut to this length. */
            max_duration?: number;
            /** @description Second of the source at which the file begins; instead of max_duration. */
            start?: number;
            /** @description Second of the source at which the file ends; instead of max_duration. */
            end?: number;
            /**
             * @description The highest bit rate wanted.
             * @default best
             * @enum {string}
             */
            audio_quality?: "best" | "320kbps" | "256kbps" | "128kbps";
            /**
             * @description The format preferred; the file may differ.
             * @default mp3
             * @enum {string}
             */
            audio_format?: "mp3" | "m4a" | "wav";
            /**
             * Format: uri
             * @description URL to which the end of the job is posted.
             */
            webhook_url?: string;
            /** @description Value of the Authorization header of the webhook. */
            webhook_authorization?: string;
            /**
             * @description Answers an error with status 200 and the same body.
             * @default false
             */
            soft_fail?: boolean;
            /**
             * @description Answers with a job_id at once. Downloads always do; endpoints that cost nothing ignore it.
             * @default false
             */
            is_async?: boolean;
            /** @description What to keep of the answer: names with commas between them, dots leading into objects and arrays. */
            fields?: string;
        };
        MetadataRequest: {
            /**
             * Format: uri
             * @description URL of the media to inspect. Its fragment counts where the site needs it.
             * @example https://example.com/film.mp4
             */
            query: string;
            /**
             * @description Answers an error with status 200 and the same body.
             * @default false
             */
            soft_fail?: boolean;
            /**
             * @description Answers with a job_id at once. Downloads always do; endpoints that cost nothing ignore it.
             * @default false
             */
            is_async?: boolean;
            /** @description What to keep of the answer: names with commas between them, dots leading into objects and arrays. */
            fields?: string;
        };
        BatchRequest: {
            /**
             * @description What each item asks for.
             * @enum {string}
             */
            endpoint: "video" | "audio" | "metadata";
            /** @description The batch is refused when it has more items. */
            max_credits?: number;
            /** @description Most entries of the playlist that are taken, the first ones; without `playlist` the batch is refused when it has more items. */
            max_items?: number;
            /**
             * @description The one item names a playlist, each entry of which becomes an item with the same parameters.
             * @default false
             */
            playlist?: boolean;
            /**
             * Format: uri
             * @description URL to which the end of the job is posted.
             */
            webhook_url?: string;
            /** @description Value of the Authorization header of the webhook. */
            webhook_authorization?: string;
            /** @description Parameters of each job, as the endpoint takes them; with `playlist` one item, whose `query` is the playlist. */
            items: {
                /**
                 * Format: uri
                 * @description URL of the video. Its fragment counts where the site needs it.
                 * @example https://example.com/film.mp4
                 */
                query: string;
                /**
                 * @description What is delivered.
                 * @default audio_video
                 * @enum {string}
                 */
                download_type?: "audio_video" | "audio" | "video";
                /** @description Seconds; what is longer is cut to this length. */
                max_duration?: number;
                /** @description Second of the source at which the file begins; instead of max_duration. */
                start?: number;
                /** @description Second of the source at which the file ends; instead of max_duration. */
                end?: number;
                /**
                 * @description The highest bit rate wanted.
                 * @default best
                 * @enum {string}
                 */
                audio_quality?: "best" | "320kbps" | "256kbps" | "128kbps";
                /**
                 * @description The format preferred; the file may differ.
                 * @default mp3
                 * @enum {string}
                 */
                audio_format?: "mp3" | "m4a" | "wav";
                /**
                 * Format: uri
                 * @description URL to which the end of the job is posted.
                 */
                webhook_url?: string;
                /** @description Value of the Authorization header of the webhook. */
                webhook_authorization?: string;
                /**
                 * @description The largest picture wanted.
                 * @default best
                 * @enum {string}
                 */
                video_quality?: "best" | "1080p" | "720p" | "480p" | "360p";
                /**
                 * @description The container preferred; the file may differ.
                 * @default mp4
                 * @enum {string}
                 */
                video_format?: "mp4" | "webm" | "mkv";
            }[];
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
