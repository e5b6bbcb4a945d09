/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 37: 40 columns times the share, rounded half up. */
BEGIN
{
	@ = quantize(1, 1);
	@ = quantize(2, 79);
	exit(0);
}
/* output:


           value  ------------- Distribution ------------- count    
               0 |                                         0        
               1 |@                                        1        
               2 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 79       
               4 |                                         0        

*/
