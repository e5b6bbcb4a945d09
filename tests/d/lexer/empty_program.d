/* SPDX-License-Identifier: Apache-2.0 */
/* A file without a clause is refused. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_EMPTY] */

